"""The end of an asynchronous invocation, as a destination receives it."""

import json
from base64 import b64encode
from typing import Any

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.invocations.destination_documents import DOCUMENT_BYTES_MAX, destination_document
from flowserver.machine.invocations.states import InvocationState
from tests.machine.invocations.ended_states import EXPIRED, FAILED, ended


def _document(state: InvocationState, payload: bytes = b'{"n":1}') -> Any:
    return json.loads(destination_document("s.LATEST/f", "r-1", payload, state))


def test_a_destination_receives_a_success() -> None:
    assert _document(ended(result=b"plain", attempt=1)) == {
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
    document = _document(ended(result=b'{"a":1}', attempt=1), long)
    assert (document["requestPayload"], document["responsePayload"]) == (None, {"a": 1})


def test_the_longest_document_fits_into_a_queue_in_base64() -> None:
    assert len(b64encode(bytes(DOCUMENT_BYTES_MAX))) <= Limits().queue_message_bytes_max
