"""The end of an asynchronous invocation, as the waiting step receives it."""

import pytest

from flowserver.machine.invocations.result_of_ended_invocation import result_of_invocation
from flowserver.machine.invocations.states import InvocationState, InvocationStatus
from flowserver.machine.messages import Failure, Success
from tests.machine.invocations.ended_states import FAILED, ended


@pytest.mark.parametrize(
    ("state", "result"),
    [
        (ended(result=b'{"a": 1}'), Success({"a": 1})),
        (ended(result=b"[1]"), Failure("FnF.InvalidLocal", "the function did not return a JSON object")),
        (ended(result=b"\xff"), Failure("FnF.InvalidLocal", "the function did not return a JSON object")),
        (ended(result=b"{"), Failure("FnF.InvalidLocal", "the function did not return a JSON object")),
        (ended(), Failure("FnF.InvalidLocal", "the function returned more than is kept of an invocation")),
        (FAILED, Failure("Boom", '{"errorType":"Boom"}')),
        (ended(InvocationStatus.FAILED), Failure("FC.Unknown", "")),
    ],
)
def test_the_result_for_a_waiting_step(state: InvocationState, result: Success | Failure) -> None:
    assert result_of_invocation(state) == result
