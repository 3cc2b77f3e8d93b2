"""The three cases with TestState: one state a call, so the test itself leads from state to state."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

ENDPOINT = "http://127.0.0.1:4599"
ROLE = "arn:aws:iam::000000000000:role/any"
FOLDER = Path(__file__).parent


@pytest.fixture
def client() -> Any:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    config = Config(inject_host_prefix=False)
    return boto3.client("stepfunctions", endpoint_url=ENDPOINT, region_name="us-east-1", config=config, **keys)


def run(client: Any, name: str, state: str, mock: dict[str, Any], **more: Any) -> dict[str, Any]:
    definition = (FOLDER / f"{name}.asl.json").read_text()
    given = {"definition": definition, "stateName": state, "roleArn": ROLE, "input": "{}", "mock": mock}
    result: dict[str, Any] = client.test_state(**given, inspectionLevel="DEBUG", **more)
    return result


def returns(payload: Any) -> dict[str, Any]:
    return {"result": json.dumps({"StatusCode": 200, "Payload": payload}), "fieldValidationMode": "NONE"}


def fails(error: str) -> dict[str, Any]:
    return {"errorOutput": {"error": error, "cause": ""}, "fieldValidationMode": "NONE"}


def test_paid_at_the_third_call(client: Any) -> None:
    for retries, seconds in ((0, 2), (1, 4)):
        counted = {"stateConfiguration": {"retrierRetryCount": retries}}
        busy = run(client, "payment", "Charge", fails("Lambda.TooManyRequestsException"), **counted)
        assert busy["status"] == "RETRIABLE"
        assert busy["inspectionData"]["errorDetails"]["retryBackoffIntervalSeconds"] == seconds
    paid = run(client, "payment", "Charge", returns({"paid": True}))
    assert (paid["status"], json.loads(paid["output"])) == ("SUCCEEDED", {"paid": True})


def test_not_approved_in_30_days(client: Any) -> None:
    asked = run(client, "approval", "Ask", fails("States.Timeout"))
    assert (asked["status"], asked["nextState"]) == ("CAUGHT_ERROR", "Expired")


def test_no_flight(client: Any) -> None:
    hotel = run(client, "trip", "BookHotel", returns({"hotel": "h1"}))
    assert (hotel["status"], hotel["nextState"]) == ("SUCCEEDED", "BookFlight")
    flight = run(client, "trip", "BookFlight", fails("SoldOut"))
    assert (flight["status"], flight["nextState"]) == ("CAUGHT_ERROR", "CancelHotel")
    cancelled = run(client, "trip", "CancelHotel", returns({}))
    assert (cancelled["status"], cancelled["nextState"]) == ("SUCCEEDED", "Failed")
