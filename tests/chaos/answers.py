"""The answers of a run's functions. They depend only on the function's name and the event, not on who calls how often.

The simulation's functions may answer each retry differently. Here a retry cannot be distinguished from a call that was
lost with its node and made again, so for one event a function fails either always or never.
"""

from typing import Any

from flowserver.base.json_values import JsonObject, dump_json
from tests.simulation.functions import SILENCE, Answer, Functions

ACTION = "ocr:Read"
CALLEES = ("echo", "calc", "make", "many", "bump", "odd", "slow", "flaky", "ask", "slow_ask", "child")
SERVICE = "sim"
TITLES = {**{f"{SERVICE}/{name}": name for name in CALLEES}, "ocr/Read": ACTION}
"""Functions as they are registered, and their names in the simulation."""


class SteadyFunctions(Functions):
    """The answers of functions, before the server has worded their causes."""

    def answer(self, callee: str, event: JsonObject, retry: int) -> Answer:
        """The answer, which is the same for every retry."""
        return SILENCE if callee.startswith("slow") else super().answer(callee, event, 0)


class SeenFunctions(Functions):
    """The same answers as steps see them, for the reference: names and causes of errors as the server words them."""

    def __init__(self, functions: SteadyFunctions) -> None:
        self._functions = functions

    def answer(self, callee: str, event: JsonObject, retry: int) -> Answer:
        """The answer as the server passes it on."""
        answer = self._functions.answer(callee, event, retry)
        document = error_document(answer)
        if document is None or (callee == "ask" and not answer.at_submission):
            return answer
        error = document["errorType"]
        if callee == ACTION and not error.startswith("FC."):
            error = f"ocr.{error}"
        return Answer(raises=error, cause=dump_json(document))


def error_document(answer: Answer) -> dict[str, Any] | None:
    """The body that a failing function sends; None if it does not fail."""
    if answer.raises is not None:
        return {"errorType": answer.raises, "errorMessage": answer.cause}
    if isinstance(answer.returns, dict) or answer.is_silent:
        return None
    return {"errorType": "FnF.InvalidLocal", "errorMessage": "not an object"}
