"""Changes of texts, and how a name is written in YAML and JSON."""

import json
import re
from dataclasses import dataclass
from typing import Final

from flowserver.editing.texts import Extent
from flowserver.language.scalars import plain_value

_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*")
"""Anchors and tags before a value."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Put a text in the place of another."""

    extent: Extent
    text: str


def replaced(within: str, extent: Extent, value: str, old: str, new: str, start: int = 0) -> Edit:
    """Put `new` in the place of `old` in a scalar that is written at an extent of a text, as it is quoted there.

    `start` is where `old` begins in the value of the scalar. A value that is written with escapes is written anew,
    after its anchor and tag.
    """
    raw = within[extent.start : extent.end]
    properties = _PROPERTIES.match(raw)
    begin = 0 if properties is None else properties.end()
    if raw[begin:] == old:
        return Edit(Extent(extent.start + begin, extent.end), _word(new))
    at = -1 if raw[begin:].startswith('"') and "\\" in raw[begin:] else raw.find(old, begin + start)
    if at < 0:
        whole = value[:start] + new + value[start + len(old) :]
        return Edit(Extent(extent.start + begin, extent.end), json.dumps(whole, ensure_ascii=False))
    return Edit(Extent(extent.start + at, extent.start + at + len(old)), new)


def _word(text: str) -> str:
    """A name as a plain scalar, or in quotes if it would be another value without them."""
    return text if isinstance(plain_value(text), str) else f'"{text}"'
