"""Text of others on a terminal. A function chooses its error's text, which must not move the cursor of an operator who
reads it, hide lines, or change their order.
"""

import json
import re
from typing import Any, Final

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters except tabs and line feeds, separators of lines, and what changes the direction of text."""


def printable(text: str) -> str:
    """The text with control characters written as escapes, such as `\\x1b`."""
    return _CONTROL.sub(lambda found: _escape(found[0]), text)


def json_text(document: Any, indent: int | None = None) -> str:
    """The document as JSON, whose own escapes keep its value."""
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
