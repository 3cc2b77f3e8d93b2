"""Request parameters: texts by name, as any SDK generation sends them, and their conversion to values.

Parameters of the API that this server does not carry out are refused by name. Others that it does not know are
ignored: every SDK sends some of its own, with its signature or beside it (RegionId, Format, SecurityToken).
"""

import re
from collections.abc import Mapping
from typing import Final

from flowserver.base.clock import parse_instant
from flowserver.base.errors import InvalidArgument, MissingParameter
from flowserver.base.utf8_texts import BYTE_ORDER_MARK
from flowserver.operations.callers import EVERYTHING, Caller

PYTHON_NONE = "None"
"""What the classic Python SDK sends for a parameter that was set to None. `given` takes it for absent."""

NOT_CARRIED_OUT: Final = {
    "Qualifier": ("StartExecution", "StartSyncExecution", "ListExecutions"),
    "FlowVersion": ("DescribeFlow", "DeleteFlowVersion"),
    "MapRunName": (),
}
"""Parameters of newer releases that change what an action does, and the actions that carry them out."""

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}\Z")

BOOLEANS = {"true": True, "false": False}


def given(texts: Mapping[str, str], name: str) -> str | None:
    """The parameter, which may be empty, or None if it is absent."""
    value = texts.get(name)
    return None if value == PYTHON_NONE else value


class Parameters:
    """Query and form merged. Making it raises InvalidArgument for a parameter that the action does not carry out."""

    def __init__(
        self, texts: Mapping[str, str], action: str, request_id: str = "", caller: Caller = EVERYTHING
    ) -> None:
        self.request_id = request_id
        self.caller = caller
        """Who makes the call; its label is not known."""
        self._texts = texts
        for name, actions in NOT_CARRIED_OUT.items():
            if name in texts and action not in actions and self.text(name) is not None:
                raise InvalidArgument(f"the parameter {name} of {action} is not supported here")

    def given(self, name: str) -> str | None:
        """The parameter, which may be empty, or None if it is absent."""
        return given(self._texts, name)

    def text(self, name: str) -> str | None:
        """The parameter, None if it is absent or empty, because SDKs send an empty text for unset fields."""
        return self.given(name) or None

    def required(self, name: str) -> str:
        """The parameter; raises MissingParameter."""
        value = self.text(name)
        if value is None:
            raise MissingParameter(f"the parameter {name} is missing")
        return value

    def document(self, name: str) -> str:
        """JSON text, "" if absent; without a byte order mark."""
        return (self.text(name) or "").removeprefix(BYTE_ORDER_MARK)

    def given_document(self, name: str) -> str | None:
        """JSON text, which may be empty, without a byte order mark; None if it is absent."""
        value = self.given(name)
        return None if value is None else value.removeprefix(BYTE_ORDER_MARK)

    def integer(self, name: str) -> int | None:
        """A whole number; raises InvalidArgument."""
        value = self.text(name)
        if value is None:
            return None
        if not WHOLE_NUMBER.match(value):
            raise InvalidArgument(f"{name} must be a whole number")
        return int(value)

    def boolean(self, name: str) -> bool:
        """`true` or `false` in any case, absent being false; raises InvalidArgument."""
        value = (self.text(name) or "false").lower()
        if value not in BOOLEANS:
            raise InvalidArgument(f"{name} must be true or false")
        return BOOLEANS[value]

    def instant(self, name: str) -> int | None:
        """An RFC 3339 time as ms since the epoch; raises InvalidArgument."""
        value = self.text(name)
        if value is None:
            return None
        try:
            return parse_instant(value)
        except ValueError:
            raise InvalidArgument(f"{name} must be an RFC 3339 time such as 2019-01-01T01:01:01Z") from None
