"""The three cases with the mock configuration of Step Functions Local, which LocalStack reads as well."""

import json
import time
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


def run(client: Any, name: str, case: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    definition = (FOLDER / f"{name}.asl.json").read_text()
    machine = client.create_state_machine(name=name, definition=definition, roleArn=ROLE)["stateMachineArn"]
    execution = client.start_execution(stateMachineArn=f"{machine}#{case}", input="{}")["executionArn"]
    while (ended := client.describe_execution(executionArn=execution))["status"] == "RUNNING":
        time.sleep(0.05)
    return ended, client.get_execution_history(executionArn=execution)["events"]


def entered(events: list[dict[str, Any]]) -> list[str]:
    return [event["stateEnteredEventDetails"]["name"] for event in events if "stateEnteredEventDetails" in event]


def test_paid_at_the_third_call(client: Any) -> None:
    ended, events = run(client, "payment", "PaidAtTheThirdCall")
    assert json.loads(ended["output"]) == {"paid": True}
    assert sum(event["type"] == "TaskScheduled" for event in events) == 3


def test_not_approved_in_30_days(client: Any) -> None:
    ended, _ = run(client, "approval", "NotApproved")
    assert (ended["status"], ended["error"]) == ("FAILED", "NotApprovedInTime")


def test_no_flight(client: Any) -> None:
    ended, events = run(client, "trip", "NoFlight")
    assert (ended["status"], ended["error"]) == ("FAILED", "TripFailed")
    assert entered(events) == ["BookHotel", "BookFlight", "CancelHotel", "Failed"]
