"""The small examples, run by the commands of their READMEs."""

import json
import re
import subprocess

import httpx
import pytest

from tests.examples.conftest import EXAMPLES, functions_served
from tests.support.server import clean_environment

WHERE = "http://127.0.0.1:8080"
SMALL = ["saga", "map-reduce", "finally"]


def run_readme(example: str, variables: dict[str, str]) -> list[dict]:
    """Run the README's commands from the checkout's root; returns the executions that they show."""
    (block,) = re.findall(r"^```sh\n(.*?)^```", (EXAMPLES / example / "README.md").read_text("utf-8"), re.M | re.S)
    commands = [line.replace(WHERE, variables["FLOWSERVER_URL"]) for line in block.splitlines()[1:]]
    with functions_served(example, variables):
        assert block.startswith(f".venv/bin/flowserver functions serve examples/{example}/functions.yaml ")
        answers = [
            json.loads(
                subprocess.run(
                    ["sh", "-c", command],
                    cwd=EXAMPLES.parent,
                    env=clean_environment(),
                    capture_output=True,
                    timeout=60,
                    check=True,
                ).stdout
            )
            for command in commands
        ]
    return [answer for answer in answers if "status" in answer]


def history(variables: dict[str, str], execution: dict) -> list[dict]:
    """The events of an execution."""
    path = f"/v1/flows/{execution['flowName']}/executions/{execution['name']}/events"
    return httpx.get(variables["FLOWSERVER_URL"] + path, params={"limit": 1000}, trust_env=False).json()["events"]


def walk(events: list[dict]) -> str:
    """The names of the entered steps, each again for every retry."""
    return " ".join(event["stepName"] for event in events if event["type"] == "StepEntered" or is_retried(event))


def is_retried(event: dict) -> bool:
    return event["type"] == "TaskFailed" and "retry" in event["detail"]


BOOKED = {thing: f"rome-{thing}" for thing in ("flight", "hotel", "car")}
EXPECTED = {
    "saga": [
        ("Succeeded", BOOKED, None, "BookFlight BookHotel BookHotel BookCar AllBooked"),
        (
            "Failed",
            None,
            "TripNotBooked",
            "BookFlight BookHotel BookHotel BookCar CancelHotel CancelHotel CancelFlight NothingBooked",
        ),
    ],
    "map-reduce": [("Succeeded", {"total": 6}, None, "Split CountEach Count Count Count Add")],
    "finally": [
        ("Succeeded", {"result": "done"}, None, "Take Work GiveBack Judge Done"),
        ("Failed", None, "WorkFailed", "Take Work GiveBack Judge WorkFailed"),
    ],
}
"""By example, of each execution: status, output, error, and its steps, a retried step several times."""


@pytest.mark.parametrize("example", SMALL)
def test_readme(example: str, open_server: dict[str, str]) -> None:
    came_of_it = [
        (row["status"], row["output"], row["error"], walk(history(open_server, row)))
        for row in run_readme(example, open_server)
    ]
    assert came_of_it == EXPECTED[example]
