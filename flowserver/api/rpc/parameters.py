"""Request parameters: texts by name, as any SDK generation sends them, and how they are read as values."""

import re
from collections.abc import Mapping

from flowserver.base.clock import parse_instant
from flowserver.base.errors import InvalidArgument, MissingParameter

PYTHON_NONE = "None"
"""What the classic Python SDK sends for a parameter that was set to None."""

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}\Z")

BOOLEANS = {"true": True, "false": False}


class Parameters:
    """Query and form merged. An empty text counts as absent, because SDKs send it for unset fields."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, name: str) -> str | None:
        """The parameter, None if absent or empty."""
        return self._texts.get(name) or None

    def required(self, name: str) -> str:
        """The parameter; raises MissingParameter."""
        value = self.text(name)
        if value is None:
            raise MissingParameter(f"the parameter {name} is missing")
        return value

    def document(self, name: str) -> str:
        """JSON text, "" if absent."""
        value = self.text(name)
        return "" if value is None or value == PYTHON_NONE else value

    def integer(self, name: str) -> int | None:
        """A whole number; raises InvalidArgument."""
        value = self.text(name)
        if value is None or value == PYTHON_NONE:
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
