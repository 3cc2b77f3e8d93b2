"""The behavior of the functions, sub-flows and people of a simulated world.

An answer depends only on the name, the event and the number of the retry. So the machine and the reference get the same
answer in any order of calls, and a repeated call gets the same answer again.
"""

import json
from dataclasses import dataclass
from zlib import crc32

from flowserver.base.json_values import Json, JsonObject

KEYS = ("a", "b", "c", "d")
"""The keys of all generated data."""

ERRORS = ("E1", "E2", "FC.Unknown")
SUB = "sub"
"""The flow that sub-flow steps really start. Other flows are simulated: they answer as functions do."""

SLOW_SUB, SLOW_LEAF, NEVER = "slow_sub", "slow_leaf", "never"
"""The first flow starts the second, which waits for a report that never comes. Only a stop ends them."""

TOKEN = "token"
"""The key under which flows pass on their task token. Answers do not depend on tokens."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one attempt: a result, an error (possibly at submission), or no answer at all."""

    returns: Json = None
    raises: str | None = None
    cause: str = ""
    at_submission: bool = False
    is_silent: bool = False


_SORTED = json.JSONEncoder(sort_keys=True)

SILENCE = Answer(is_silent=True)


def event_text(event: JsonObject) -> str:
    """An event in a form that the machine and the reference share."""
    return _SORTED.encode({key: value for key, value in event.items() if key != TOKEN})


class Functions:
    """All functions of one execution; a seed determines their behavior."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def answer(self, callee: str, event: JsonObject, retry: int) -> Answer:
        """The answer of a function, flow or action to an event on a retry (0: the first attempt)."""
        dice = crc32(f"{self._seed}|{callee}|{event_text(event)}|{retry}".encode())
        luck, dice = dice % 100, dice // 100
        calculated = Answer({KEYS[dice % 4]: dice // 4 % 5})
        if callee in (SLOW_SUB, SLOW_LEAF, NEVER):
            return SILENCE
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
        return _error_answer(callee, dice)


def _error_answer(callee: str, dice: int) -> Answer:
    if callee == "odd":
        return Answer([dice % 3])
    if callee.startswith("slow") and dice % 2:
        return SILENCE
    return Answer(raises=ERRORS[dice % 3], cause=f"cause {dice % 5}", at_submission=dice % 7 == 0)
