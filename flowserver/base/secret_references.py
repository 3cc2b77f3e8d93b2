"""References to secrets, `${secret:NAME}`, in URLs and headers: they are stored, and filled in when a call is made."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

MARK: Final = "${secret:"
"""What every reference begins with."""

_REFERENCE: Final = re.compile(r"\$\{secret:([A-Za-z_][A-Za-z0-9_-]{0,127})\}")
_REST_OF_REFERENCES: Final = re.compile(rf"([A-Za-z][A-Za-z0-9_-]{{0,31}} )?({_REFERENCE.pattern})+")
_AUTHORITY: Final = re.compile(r"[^:/?#]*://([^/?#]*)")


def secrets_named_in(*texts: str | None) -> set[str]:
    """The names of the secrets that the texts refer to."""
    return {name for text in texts if text is not None and MARK in text for name in _REFERENCE.findall(text)}


def has_broken_reference(text: str) -> bool:
    """Whether something in the text begins like a reference and is none."""
    return text.count(MARK) != len(_REFERENCE.findall(text))


def is_only_references(text: str) -> bool:
    """Whether the text holds nothing of its own but one word such as `Bearer` before the references."""
    return _REST_OF_REFERENCES.fullmatch(text) is not None


def is_before_path(url: str) -> bool:
    """Whether a reference is in the scheme, host or port of a URL, or where these should be."""
    authority = _AUTHORITY.match(url)
    return authority is None or MARK in authority[0]


def with_stand_ins(text: str) -> str:
    """The text with a word in place of each reference, for checks of the rest."""
    return _REFERENCE.sub("secret", text)


def filled_text(text: str, values: Mapping[str, str]) -> str:
    """The text with the values of its references; raises KeyError."""
    return _REFERENCE.sub(lambda found: values[found[1]], text) if MARK in text else text


def filled_url(url: str, values: Mapping[str, str]) -> str:
    """The URL with the values, percent-encoded: a value cannot lead to another host, path or parameter."""
    return _REFERENCE.sub(lambda found: quote(values[found[1]], safe=""), url) if MARK in url else url
