"""The README's first flows, run as written, in one shell; only ports and the program's path differ."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.ports import free_port
from tests.support.server import clean_environment

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BASH = re.findall(r"^```bash\n(.*?)^```", README, re.M | re.S)
PYTHON = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
OTHER_PORT = re.search(r"If port 8080 is in use, run `export ([^`]*)` first", README)
"""The README's advice for machines whose port 8080 is in use, adapted."""
PATIENCE_SECONDS = 60


def test_the_commands_for_make_are_tasks_of_the_makefile() -> None:
    tasks = re.findall(r"^make (\w+)", "".join(BASH[:2]), re.M)

    assert tasks == ["run", "test", "install"]
    assert all(re.search(rf"^{task}:", (ROOT / "Makefile").read_text(), re.M) for task in tasks)


def test_the_first_flows_run_as_the_readme_says(tmp_path: Path) -> None:
    _, _, write, serve, run_commands, run_hello, check, run_ask, report = BASH
    port = str(free_port())
    assert "\nflowserver functions serve functions.yaml &" in serve
    terminal = Terminal(tmp_path, port)
    terminal.run(write)
    with terminal.serving(serve):
        printed = terminal.run(run_commands)
        greeted = json_texts(terminal.run(run_hello))[-1]
        checked = terminal.run(check)
        terminal.run(run_ask)
        answered = terminal.run(report).partition("the execution continues\n")[2]
        started = terminal.run_python(PYTHON[0])

    assert json.loads(printed.partition("created\n")[2]) == {"name": "world", "greeting": "Hello world"}
    assert (greeted["status"], greeted["output"]) == ("Succeeded", {"name": "world", "greeting": "Hello world"})
    for found in ("hello.yaml: no errors", "1 passed in ", "hello.flowtest.yaml: no property broken"):
        assert found in checked
    assert json.loads(answered) == {"answer": "yes"}
    assert started["FlowName"] == "hello"


class Terminal:
    """A reader's terminal: one folder, the environment activated, another port chosen as the README says."""

    def __init__(self, folder: Path, port: str) -> None:
        self._folder = folder
        self._port = port
        assert OTHER_PORT is not None
        self._environment = (
            clean_environment()
            | {
                "PATH": f"{Path(sys.executable).parent}:{clean_environment()['PATH']}",
            }
            | dict(pair.split("=") for pair in OTHER_PORT[1].replace("8081", port).split())
        )

    def run(self, block: str) -> str:
        """Run a block in a shell that stops at the first failure; returns its output."""
        return self._run("bash", "-euo", "pipefail", "-c", block)

    def run_python(self, program: str) -> dict[str, Any]:
        """Run a program of the SDK; returns the document that it printed."""
        printed = self._run(sys.executable, "-W", "ignore", "-c", program)
        document: dict[str, Any] = json.loads(ast.literal_eval(printed))
        return document

    @contextmanager
    def serving(self, block: str) -> Iterator[None]:
        """Leave a block's programs running in the background until the end of the test; ready when they registered."""
        any_port = block.replace("functions.yaml &", "functions.yaml --listen 127.0.0.1:0 &")
        ending = "trap 'kill $(jobs -p); wait' TERM"
        with subprocess.Popen(
            ["bash", "-c", f"{ending}\n{any_port}\nwait"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as shell:
            assert shell.stdout is not None
            try:
                assert any("Registered" in line for line in shell.stdout), (self._folder / "server.log").read_text()
                yield
            finally:
                shell.terminate()

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            [text.replace("127.0.0.1:8080", f"127.0.0.1:{self._port}") for text in command],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def json_texts(printed: str) -> list[Any]:
    """The JSON values in the output of curl, one after another."""
    values, position = [], 0
    while position < len(printed.rstrip()):
        value, position = json.JSONDecoder().raw_decode(printed, position)
        values.append(value)
    return values
