"""UTF-8 texts of others: without a byte order mark, and with an error that names another encoding."""

import codecs
from pathlib import Path
from typing import Final

BYTE_ORDER_MARK: Final = "\ufeff"
"""Editors and shells of Windows write it before a text; it belongs to no value."""

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # begins as that of UTF-16
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class NotUtf8(ValueError):
    """The bytes are no UTF-8 text; the message says what they are, or where the mistake is."""


def utf8_text(content: bytes) -> str:
    """The text, without a byte order mark; raises NotUtf8."""
    name = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    if name is None and len(content) > 1 and 0 in content[:2]:  # no text begins with NUL
        name = "UTF-32" if content[:2] == b"\0\0" or content[1:4] == b"\0\0\0" else "UTF-16"
    if name is not None:
        raise NotUtf8(f"encoded as {name}; write it as UTF-8")
    try:
        return content.decode().removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise NotUtf8(f"not UTF-8 text (at byte {error.start + 1})") from None


def read_utf8(path: Path) -> str:
    """The text of a file, with LF as line ends; raises OSError and NotUtf8."""
    return with_line_feeds(utf8_text(path.read_bytes()))


def with_line_feeds(text: str) -> str:
    """The text with LF as line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
