"""The approval example as in its README: a person answers on the worker's terminal."""

import getpass
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.examples.conftest import EXAMPLES
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment

FOLDER = EXAMPLES / "approval"


class Person:
    """A person at the terminal of a worker."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._keyboard, self._screen = process.stdin, process.stdout

    def read_until(self, words: str) -> str:
        """The line that holds the words."""
        return next(line for line in self._screen if words in line)

    def answer(self, text: str) -> None:
        self._keyboard.write(f"{text}\n")
        self._keyboard.flush()


@contextmanager
def worker(variables: dict[str, str], program: Path = FOLDER / "worker.py") -> Iterator[Person]:
    """A worker that waits for requests; it is killed at the end, which must lose nothing."""
    with subprocess.Popen(
        [sys.executable, str(program)],
        env=clean_environment() | variables | {"PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            person = Person(process)
            person.read_until("waiting for requests")
            yield person
        finally:
            process.kill()


def shell(command: str, variables: dict[str, str]) -> dict[str, Any]:
    """The output of a README command; with the key, if there is one."""
    typed = command.replace("http://127.0.0.1:8080", variables["FLOWSERVER_URL"])
    if "FLOWSERVER_TOKEN" in variables:
        typed = typed.replace("curl ", f"curl -H 'Authorization: Bearer {variables['FLOWSERVER_TOKEN']}' ")
    line = ["bash", "-o", "pipefail", "-c", typed]
    ran = subprocess.run(
        line, cwd=EXAMPLES.parent, env=clean_environment(), capture_output=True, timeout=PATIENCE_SECONDS, check=True
    )
    return json.loads(ran.stdout)


def ended(execution: dict[str, Any]) -> tuple[Any, ...]:
    return execution["status"], execution["output"], execution["error"]


@pytest.mark.parametrize("server", ["open_server", "keyed_server"])
def test_readme(request: pytest.FixtureRequest, server: str) -> None:
    variables: dict[str, str] = request.getfixturevalue(server)
    blocks = re.findall(r"^```sh\n(.*?)^```", (FOLDER / "README.md").read_text("utf-8"), re.M | re.S)
    starting, looking, hasty = (block.splitlines() for block in blocks)
    assert starting[0].startswith(".venv/bin/python examples/approval/worker.py ")
    with worker(variables) as person:
        for command in starting[1:]:
            shell(command, variables)
        assert person.read_until("for 80?") == "chair: a new chair for 80?\n"
        person.answer("yes")
        person.read_until("reported")
        assert person.read_until("for 9000?") == "boat: a boat for 9000?\n"
        person.answer("too large for the pond")
        person.read_until("reported")
        chair, boat = (ended(shell(command, variables)) for command in looking)
        assert chair == ("Succeeded", {"approvedBy": getpass.getuser(), "decision": "approved"}, None)
        rejected = {"decision": "rejected", "error": "Rejected", "reason": "too large for the pond"}
        assert boat == ("Succeeded", rejected, None)

        shell(hasty[0], variables)
        assert ended(shell(hasty[1], variables)) == ("Failed", None, "NobodyAnswered")
        person.read_until("an umbrella for 20?")
        person.answer("yes")
        person.read_until("the flow no longer waits for this answer")


def test_a_worker_goes_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    database_url = f"sqlite:///{tmp_path / 'flows.db'}"
    with ServerProcess(database_url) as server, worker({"FLOWSERVER_URL": server.url}) as person:
        flow = f"{server.url}/v1/flows/approval"
        yaml = {"Content-Type": "application/yaml"}
        assert httpx.put(flow, content=(FOLDER / "flow.yaml").read_bytes(), headers=yaml, trust_env=False).is_success
        server.kill()
        person.read_until("try again")
        with ServerProcess(database_url, port=server.port):
            order = {"name": "tea", "input": {"what": "tea", "amount": 3}}
            assert httpx.post(f"{flow}/executions", json=order, trust_env=False).is_success
            person.read_until("tea: tea for 3?")
            person.answer("yes")
            person.read_until("reported")


def test_a_request_whose_worker_was_killed_reaches_another_worker(open_server: dict[str, str], tmp_path: Path) -> None:
    """With a queue that hides messages for a second, so the test does not wait for ten minutes."""
    program, flow = tmp_path / "worker.py", tmp_path / "flow.yaml"
    for file in (program, flow):
        text = (FOLDER / file.name).read_text("utf-8")
        file.write_text(text.replace("approvals", "restless").replace("DECIDE = 600", "DECIDE = 1"), "utf-8")
    flows = f"{open_server['FLOWSERVER_URL']}/v1/flows"
    with httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False) as client:
        with worker(open_server, program) as person:
            yaml = {"Content-Type": "application/yaml"}
            assert client.put(f"{flows}/restless", content=flow.read_bytes(), headers=yaml).is_success
            order = {"name": "tea", "input": {"what": "tea", "amount": 3}}
            assert client.post(f"{flows}/restless/executions", json=order).is_success
            person.read_until("tea: tea for 3?")
        with worker(open_server, program) as person:
            person.read_until("tea: tea for 3?")
            person.answer("yes")
            person.read_until("reported")
        execution = client.get(f"{flows}/restless/executions/tea", params={"wait": 30}).json()
    assert execution["output"]["decision"] == "approved"
