"""Names that users choose, and the ids of executions that follow from others."""

import re
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from flowserver.base.errors import InvalidArgument

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}\Z")
"""Flow, execution, schedule and step names: 1-128 of letters, digits, `_`, `-`, not starting with a digit or `-`."""

GENERATED_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,127}:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
"""Names that a server makes for executions: a UUID, after the chosen name and a colon for synchronous ones."""

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


def child_execution_id(execution_id: str, scope_id: int, wait_id: int) -> str:
    """The id of the execution that an attempt of a sub-flow step starts. The same attempt always gives the same id."""
    return str(uuid5(NAMESPACE_OID, f"{execution_id}#{scope_id}#{wait_id}"))


HIDDEN: Final = "(hidden)"
"""Shown in place of a value that is a secret."""


def scheduled_execution_id(schedule_id: str, at_ms: int, *, is_trigger: bool) -> str:
    """The id of the execution that a schedule starts for an instant (ms). The same instant always gives the same id."""
    return str(uuid5(NAMESPACE_OID, f"{schedule_id}@{at_ms}{'!' if is_trigger else ''}"))
