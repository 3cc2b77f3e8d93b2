"""The end of an asynchronous invocation, as the waiting step and a destination receive it."""

import json
from base64 import b64encode
from typing import Any

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.invocations.results import DOCUMENT_BYTES_MAX, destination_document, result_of_invocation
from flowserver.machine.invocations.states import InvocationSettings, InvocationState, InvocationStatus
from flowserver.machine.messages import Failure, Success


def _state(status: InvocationStatus = InvocationStatus.SUCCEEDED, **changes: Any) -> InvocationState:
    given = {
        "status": status,
        "created_at": 1,
        "settings": InvocationSettings(),
        "events": (),
        "ended_at": 9,
        **changes,
    }
    return InvocationState(**given)


FAILED = _state(InvocationStatus.FAILED, attempt=2, error="Boom", cause='{"errorType":"Boom"}')
EXPIRED = _state(InvocationStatus.EXPIRED, error="FC.InvocationExpired", cause="it waited")


@pytest.mark.parametrize(
    ("state", "result"),
    [
        (_state(result=b'{"a": 1}'), Success({"a": 1})),
        (_state(result=b"[1]"), Failure("FnF.InvalidLocal", "the function did not return a JSON object")),
        (_state(result=b"\xff"), Failure("FnF.InvalidLocal", "the function did not return a JSON object")),
        (_state(result=b"{"), Failure("FnF.InvalidLocal", "the function did not return a JSON object")),
        (_state(), Failure("FnF.InvalidLocal", "the function returned more than is kept of an invocation")),
        (FAILED, Failure("Boom", '{"errorType":"Boom"}')),
        (_state(InvocationStatus.FAILED), Failure("FC.Unknown", "")),
    ],
)
def test_the_result_for_a_waiting_step(state: InvocationState, result: Success | Failure) -> None:
    assert result_of_invocation(state) == result


def _document(state: InvocationState, payload: bytes = b'{"n":1}') -> Any:
    return json.loads(destination_document("s.LATEST/f", "r-1", payload, state))


def test_a_destination_receives_a_success() -> None:
    assert _document(_state(result=b"plain", attempt=1)) == {
        "timestamp": 9,
        "requestContext": {
            "requestId": "r-1",
            "functionArn": "acs:fc:::services/s.LATEST/functions/f",
            "condition": "",
            "approximateInvokeCount": 1,
        },
        "requestPayload": {"n": 1},
        "responseContext": {"statusCode": 200, "functionError": ""},
        "responsePayload": "plain",
    }


@pytest.mark.parametrize(
    ("state", "condition", "status", "error", "response"),
    [
        (FAILED, "UnhandledInvocationError", 200, "UnhandledInvocationError", {"errorType": "Boom"}),
        (EXPIRED, "Expired", 400, "", {"errorType": "FC.InvocationExpired", "errorMessage": "it waited"}),
    ],
)
def test_a_destination_receives_a_failure(
    state: InvocationState, condition: str, status: int, error: str, response: Any
) -> None:
    document = _document(state, b"")
    assert (document["requestContext"]["condition"], document["requestPayload"]) == (condition, None)
    assert document["responseContext"] == {"statusCode": status, "functionError": error}
    assert document["responsePayload"] == response


def test_payloads_too_large_for_a_destination_are_left_out() -> None:
    long = json.dumps({"text": "x" * DOCUMENT_BYTES_MAX}).encode()
    document = _document(_state(result=b'{"a":1}', attempt=1), long)
    assert (document["requestPayload"], document["responsePayload"]) == (None, {"a": 1})


def test_the_longest_document_fits_into_a_queue_in_base64() -> None:
    assert len(b64encode(bytes(DOCUMENT_BYTES_MAX))) <= Limits().queue_message_bytes_max
