"""The cost of the check of one definition, counted while it runs.

Three rules keep the check of any text cheap. YAML is charged before it is built, with aliases followed, by values and
by characters (`composer`). All later work is linear in both: an expression is compiled once for all its aliases, and
similar words are looked up for the first few mistakes only. A check that finds DIAGNOSTICS_MAX errors stops
(`diagnostics.Report`).
"""

from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import Final

from flowserver.language.hints import Hint

PAUSE_UNITS: Final = 50
"""Units of work between two pauses; a unit takes about 10 µs, so one may come twice in a millisecond."""

UNIT_CHARACTERS: Final = 4
"""Characters of an expression that count as one unit when it is compiled."""

HINTS_MAX: Final = 20
"""Mistakes of one definition for which similar words are looked up."""

_HINTED_MAX: Final = 40  # longest unknown word for which similar ones are looked up
_KNOWN_MAX: Final = 100  # most known words that are compared with it
_PART_MIN: Final = 4  # shortest word that hints at a longer one, as `timeout` does at `timeoutSeconds`


def _go_on() -> None:
    """The pause of a check in a thread of its own: none."""


class Work:
    """Counts `units` of work (a YAML event, an attribute, a few characters to compile), `compiled` expressions and
    looked-up `hints`, and calls `pause` after every PAUSE_UNITS units so that the caller can let others run.
    """

    def __init__(self, pause: Callable[[], None] = _go_on) -> None:
        self.units = 0
        self.compiled = 0
        self.hints = 0
        self._pause = pause
        self._next_pause = PAUSE_UNITS

    def spend(self, units: int) -> None:
        """Count units of work before they are done."""
        self.units += units
        if self.units >= self._next_pause:
            self._next_pause = self.units + PAUSE_UNITS
            self._pause()

    def similar(self, word: str, known: Collection[str]) -> str | None:
        """A hint with the known word that the writer probably meant; None if there is none, or after HINTS_MAX."""
        if len(word) > _HINTED_MAX or len(known) > _KNOWN_MAX or self.hints >= HINTS_MAX:
            return None
        self.hints += 1
        folded = {name.casefold(): name for name in known}
        if found := get_close_matches(word.casefold(), folded, n=1, cutoff=0.7):
            return Hint.DID_YOU_MEAN.of(name=folded[found[0]])
        if len(word) >= _PART_MIN:
            longer = [name for each, name in folded.items() if word.casefold() in each]
            found = [name for name in longer if name.casefold().startswith(word.casefold())] or longer
            return Hint.DID_YOU_MEAN.of(name=found[0]) if len(found) == 1 else None
        return None
