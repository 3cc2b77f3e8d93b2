"""What the functions, sub-flows and people of a simulated world do.

An answer follows from the name, the event and the number of the retry alone, so that the machine and the reference
get the same one whatever the order of their calls, and a call that is made twice is answered twice alike.
"""

import json
from dataclasses import dataclass
from zlib import crc32

from flowserver.base.json_values import Json, JsonObject

KEYS = ("a", "b", "c", "d")
"""The keys that data is made of."""

ERRORS = ("E1", "E2", "FC.Unknown")
SUB = "sub"
"""The flow that sub-flow steps really start; other flows' ends are answers like those of functions."""

TOKEN = "token"
"""The key under which flows hand their task token out; tokens take no part in answers."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes of one attempt: a result, an error (perhaps at the submission already), or never a word."""

    returns: Json = None
    raises: str | None = None
    cause: str = ""
    at_submission: bool = False
    is_silent: bool = False


_SORTED = json.JSONEncoder(sort_keys=True)

SILENCE = Answer(is_silent=True)


def event_text(event: JsonObject) -> str:
    """An event as two sides can compare it."""
    return _SORTED.encode({key: value for key, value in event.items() if key != TOKEN})


class Functions:
    """All functions of one execution, their moods chosen by a seed."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def answer(self, callee: str, event: JsonObject, retry: int) -> Answer:
        """The answer of a function, flow or action to its event on a retry (0: the first attempt)."""
        dice = crc32(f"{self._seed}|{callee}|{event_text(event)}|{retry}".encode())
        luck, dice = dice % 100, dice // 100
        calculated = Answer({KEYS[dice % 4]: dice // 4 % 5})
        if callee == "echo":
            return Answer({key: value for key, value in event.items() if key != TOKEN})
        if callee == "bump":
            return Answer({"n": (event.get("n") or 0) + 1})
        if callee == "make":
            return Answer({"items": [(dice >> shift) % 5 for shift in range(dice % 4)]})
        if callee == "many":
            return Answer({"items": [(dice + number) % 5 for number in range(32 + dice % 16)]})
        if callee == "calc" or luck >= 35:
            return calculated
        return _mischief(callee, dice)


def _mischief(callee: str, dice: int) -> Answer:
    if callee == "odd":
        return Answer([dice % 3])
    if callee.startswith("slow") and dice % 2:
        return SILENCE
    return Answer(raises=ERRORS[dice % 3], cause=f"cause {dice % 5}", at_submission=dice % 7 == 0)
