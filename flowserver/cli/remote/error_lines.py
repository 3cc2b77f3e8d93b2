"""An error and its cause as one text, for lines that are cut."""

import json
import re
from typing import Any, Final

_MESSAGE: Final = "errorMessage"
_CUT: Final = re.compile(r'\s*\{\s*"errorMessage"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)
"""The beginning of an object that is too long to be kept whole."""


def error_text(error: str | None, cause: str | None) -> str:
    """`ERROR: CAUSE`, or the one of both that is there; of a cause that is a function's error object, its message."""
    return ": ".join(part for part in (error, cause_text(cause) if cause else None) if part)


def cause_text(cause: str) -> str:
    """The message of a function's error object; any other cause as it is."""
    try:
        found: Any = json.loads(cause)
    except (ValueError, RecursionError):
        found = None
        if beginning := _CUT.match(cause):
            found = {_MESSAGE: _decoded(beginning[1])}
    message = found.get(_MESSAGE) if isinstance(found, dict) else None
    return message if isinstance(message, str) and message.strip() else cause


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
