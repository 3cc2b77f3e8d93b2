"""The README's first flow, run as it is written; only the port and the place of the program differ."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.server import ServerProcess, clean_environment

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
BASH = re.findall(r"^```bash\n(.*?)^```", README, re.M | re.S)
PYTHON = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
PROGRAM = f"{sys.executable} -m flowserver"


def run(block: str, server: ServerProcess, folder: Path) -> str:
    """Run a block in a shell that stops at the first failure; returns what it printed."""
    text = block.replace("http://127.0.0.1:8080", server.url).replace(".venv/bin/flowserver", PROGRAM)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_two_commands_are_tasks_of_the_makefile() -> None:
    tasks = re.findall(r"^make (\w+)", BASH[0], re.M)

    assert tasks == ["run", "test"]
    assert all(re.search(rf"^{task}:", (ROOT / "Makefile").read_text(), re.M) for task in tasks)


def test_the_first_flow_runs_as_the_readme_says(tmp_path: Path) -> None:
    _, host, make_flow, start, finish = BASH
    with ServerProcess(f"sqlite:///{tmp_path}/flowserver.db") as server, hosting(host, server):
        run(make_flow, server, tmp_path)
        run(start, server, tmp_path)
        answers = json_texts(run(finish.replace("…", token_of(server)), server, tmp_path))
        run_python(PYTHON[0], server, tmp_path)

    assert (answers[-1]["status"], answers[-1]["output"]) == ("Succeeded", {"answer": "ok"})


@contextmanager
def hosting(block: str, server: ServerProcess) -> Iterator[None]:
    """Host the functions until the end of the test; they are registered when their line is printed."""
    command = [*PROGRAM.split(), *block.split()[1:], "--server", server.url, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=clean_environment()) as process:
        assert process.stdout is not None
        try:
            assert any("fnf-demo/echo" in line for line in process.stdout)
            yield
        finally:
            process.terminate()


def json_texts(printed: str) -> list[Any]:
    """The JSON values that stand one after another in what curl printed."""
    values, position = [], 0
    while position < len(printed.rstrip()):
        value, position = json.JSONDecoder().raw_decode(printed, position)
        values.append(value)
    return values


def token_of(server: ServerProcess) -> str:
    """What a reader copies from the history, as soon as it is there."""
    url = f"{server.url}/v1/flows/hello/executions/first/events/stream"
    with httpx.stream("GET", url, timeout=30, trust_env=False) as stream:
        for line in stream.iter_lines():
            if '"TaskSubmitted"' in line:
                return str(json.loads(line.removeprefix("data:"))["detail"]["output"]["taskToken"])
    raise AssertionError("the task was never submitted")


def run_python(program: str, server: ServerProcess, folder: Path) -> None:
    text = program.replace("127.0.0.1:8080", server.url.removeprefix("http://"))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout.decode().strip().removeprefix("b'").removesuffix("'"))["FlowName"] == "hello"
