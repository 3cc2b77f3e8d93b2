"""How the functions of a run answer: by their name and the event alone, however often and by whomever they are called.

The simulation's functions may answer each retry differently. Here nobody can tell a retry from a call that was lost
with its node and made again, so a function either fails always or never for an event.
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
    """What functions do; their causes are still plain words."""

    def answer(self, callee: str, event: JsonObject, retry: int) -> Answer:
        """The answer, whichever retry it is."""
        return SILENCE if callee.startswith("slow") else super().answer(callee, event, 0)


class SeenFunctions(Functions):
    """The same as steps see it, for the reference: names and causes of errors as the wire makes them."""

    def __init__(self, functions: SteadyFunctions) -> None:
        self._functions = functions

    def answer(self, callee: str, event: JsonObject, retry: int) -> Answer:
        """The answer after its way through the server."""
        answer = self._functions.answer(callee, event, retry)
        document = error_document(answer)
        if document is None or (callee == "ask" and not answer.at_submission):
            return answer
        error = document["errorType"]
        if callee == ACTION and not error.startswith("FC."):
            error = f"ocr.{error}"
        return Answer(raises=error, cause=dump_json(document))


def error_document(answer: Answer) -> dict[str, Any] | None:
    """What a function that fails sends; None if it does not."""
    if answer.raises is not None:
        return {"errorType": answer.raises, "errorMessage": answer.cause}
    if isinstance(answer.returns, dict) or answer.is_silent:
        return None
    return {"errorType": "FnF.InvalidLocal", "errorMessage": "not an object"}
