"""Secrets in documents, found by the names of members and by what credentials look like, and stand-ins for them.

A value that was found once is replaced wherever it is, also where it was mapped to a member with another name, and
within longer texts. Each value has a stand-in of its own: what was equal stays equal, and nothing else becomes so.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from flowserver.base.hidden_values import HIDDEN

_NAME: Final = re.compile(
    r"passw|passphrase|secret|token|api[-_]?key|authorization|credential|private[-_]?key|cookie", re.IGNORECASE
)
_CREDENTIAL: Final = re.compile(
    r"""
      \b(?:Bearer|Basic)\ +(?P<scheme>[\w.~+/=-]{6,})
    | ://[^/\s:@]*:(?P<password>[^/\s@]+)@
    | (?P<whole>
        \beyJ[\w-]{8,}\.[\w-]+\.[\w-]*
      | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
      | \bLTAI[0-9A-Za-z]{12,}\b
      | \bgh[pousr]_[0-9A-Za-z]{20,}
      | \b[rs]k_(?:live|test)_[0-9A-Za-z]{8,}
      | \bxox[abeprs]-[0-9A-Za-z-]{10,}
      | \bfl[sc]_[\w-]{16,}
      | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
      )
    """,
    re.VERBOSE | re.DOTALL,
)
"""Of a scheme of `Authorization`, of a URL, of a JSON Web Token, and of providers who give their keys a prefix."""

EQUAL_CHARACTERS_MIN: Final = 4
"""A shorter value is hidden in its member alone: many others can be equal to it by chance."""

WITHIN_CHARACTERS_MIN: Final = 8
"""A shorter value is not looked for within longer texts."""


class SecretValues:
    """The secrets of some documents: `learn` all of them, then `copy` each."""

    def __init__(self, is_known: Callable[[str], bool] = lambda _: False) -> None:
        """`is_known` says of a value that the reader has it anyway, and that it must stay."""
        self._is_known = is_known
        self._stand_ins: dict[str, str] = {}
        """By the text of the value, in the order in which they were found."""
        self._within: re.Pattern[str] | None = None
        self.kept: set[str] = set()
        """Those that are known anyway."""
        self.count = 0
        """How many places of copies were hidden."""

    def learn(self, value: Any, *, is_secret: bool = False) -> None:
        """Find the secrets in a document; `is_secret`: it is what a member with such a name holds."""
        if isinstance(value, dict):
            for key, each in value.items():
                self.learn(each, is_secret=_NAME.search(key) is not None)
        elif isinstance(value, list):
            for each in value:
                self.learn(each, is_secret=is_secret)
        elif is_secret and _may_be_one(value):
            self._add(str(value))
        if isinstance(value, str):
            for found in _CREDENTIAL.finditer(value):
                self._add(next(part for part in found.groups() if part))

    def _add(self, text: str) -> None:
        self._within = None
        if self._is_known(text):
            self.kept.add(text)
        elif text and text not in self._stand_ins:
            number = len(self._stand_ins) + 1
            self._stand_ins[text] = HIDDEN if number == 1 else f"{HIDDEN[:-1]}-{number})"

    def copy(self, value: Any, *, is_secret: bool = False) -> Any:
        """The document with a stand-in for each secret."""
        if isinstance(value, dict):
            return {key: self.copy(each, is_secret=_NAME.search(key) is not None) for key, each in value.items()}
        if isinstance(value, list):
            return [self.copy(each, is_secret=is_secret) for each in value]
        if not _may_be_one(value):
            return value
        text = str(value)
        stand_in = self._stand_ins.get(text)
        if stand_in is not None and (is_secret or len(text) >= EQUAL_CHARACTERS_MIN):
            self.count += 1
            return stand_in
        return self._without_parts(value) if isinstance(value, str) else value

    def _without_parts(self, text: str) -> str:
        if self._within is None:
            self._within = self._pattern()
        hidden, count = self._within.subn(lambda found: self._stand_ins[found[0]], text)
        self.count += count
        return _CREDENTIAL.sub(self._without_credential, hidden)

    def _pattern(self) -> re.Pattern[str]:
        parts = sorted((text for text in self._stand_ins if len(text) >= WITHIN_CHARACTERS_MIN), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, parts)) if parts else r"(?!)")

    def _without_credential(self, found: re.Match[str]) -> str:
        """A short one, which is no part of any text but of those that look so."""
        part = next(part for part in found.groups() if part)
        stand_in = self._stand_ins.get(part)
        if stand_in is None:
            return found[0]
        self.count += 1
        return found[0].replace(part, stand_in)


def _may_be_one(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)
