"""The rules for names that users choose."""

import re
from typing import Final

from flowserver.base.errors import InvalidArgument

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}\Z")
"""Flow, execution, schedule and step names: 1-128 of letters, digits, `_`, `-`, not starting with a digit or `-`."""

GENERATED_NAME = re.compile(
    r"([A-Za-z_][A-Za-z0-9_-]{0,127}:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-[1-9][0-9]?)?\Z"
)
"""Names that a server makes for executions: a UUID, after the chosen name and a colon for synchronous ones; and further
names of sub-flows that are named after it, with a number."""

NAME_CHARACTERS_MAX: Final = 128

FURTHER_NAMES_MAX: Final = 99
"""The last number of a further name."""

QUEUE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*\Z")
"""Queues and topics: letters, digits, `-`, beginning with a letter or a digit; QUEUE_NAME_CHARACTERS_MAX at most."""

QUEUE_NAME_CHARACTERS_MAX = 120

NAME_RULE = "must be 1-128 letters, digits, '_' or '-', and not start with a digit or '-'"
"""The rule as messages say it, after the name of what breaks it."""


def is_name(text: str) -> bool:
    """Whether `text` follows the rule for flow, execution, schedule and step names."""
    return NAME.match(text) is not None


def is_execution_name(text: str) -> bool:
    """Whether `text` may name an execution: as above, or made by a server, so that sub-flows can be named after it."""
    return is_name(text) or GENERATED_NAME.match(text) is not None


def check_execution_name(name: str) -> None:
    """Raises InvalidArgument unless `name` may name an execution."""
    if not is_execution_name(name):
        raise InvalidArgument(f"ExecutionName {NAME_RULE}")


def further_names(name: str) -> list[str]:
    """`NAME-2`, `NAME-3` and so on, for further executions of a sub-flow whose step names them NAME.

    A long name is cut, so that it keeps the rule for names.
    """
    return [_with_suffix(name, str(number)) for number in range(2, FURTHER_NAMES_MAX + 1)]


def name_with_id(name: str, execution_id: str) -> str:
    """The name, cut if it is long, and the execution's id: no other execution has it."""
    return _with_suffix(name if is_name(name) else "further", execution_id)


def _with_suffix(name: str, suffix: str) -> str:
    room = NAME_CHARACTERS_MAX - 1 - len(suffix)
    return f"{name[:room] if is_name(name) else name}-{suffix}"
