"""The rules for names that users choose."""

import re

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
