"""The video example as in its README: tasks that are watched, stopped half-way, and survive the server."""

import re
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.examples.conftest import EXAMPLES, Run, functions_served
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment

pytestmark = pytest.mark.slow

FOLDER = EXAMPLES / "video"
TASKS = "/2016-08-15/services/media/functions/transcode"
RAN = ["Enqueued", "Dequeued", "Running"]


def blocks() -> list[list[str]]:
    """The lines of the README's blocks of commands."""
    found = re.findall(r"^```sh\n(.*?)^```", (FOLDER / "README.md").read_text("utf-8"), re.M | re.S)
    return [block.splitlines() for block in found]


def states(output: str) -> dict[str, int]:
    """The states that `curl.sh` shows at its end, in order, each with its time."""
    return {state: int(time_ms) for time_ms, state in re.findall(r"^   (\d+) (\w+)$", output, re.M)}


def transcode(variables: dict[str, str], folder: Path, *arguments: str) -> Run:
    return Run(FOLDER / "curl.sh", *arguments, variables=variables, folder=folder)


@pytest.mark.parametrize("server", ["open_server", "keyed_server"])
def test_one_video_is_stopped_and_another_is_not(request: pytest.FixtureRequest, server: str, tmp_path: Path) -> None:
    variables = request.getfixturevalue(server) | {"VIDEO_FOLDER": str(tmp_path)}
    serving, *typed = blocks()[0]
    assert serving.startswith(".venv/bin/flowserver functions serve examples/video/functions.yaml ")
    assert [line.partition("#")[0].split() for line in typed] == [
        ["examples/video/curl.sh"],
        ["examples/video/curl.sh", "3", "60"],
    ]
    with functions_served("video", variables) as said:
        code, stopped = transcode(variables, tmp_path).result()
        assert code == 0, stopped
        code, succeeded = transcode(variables, tmp_path, "3", "60").result()
        assert code == 0, succeeded
    assert list(states(stopped)) == [*RAN, "Stopping", "Stopped"]
    assert list(states(succeeded)) == [*RAN, "Succeeded"]
    assert [path.suffix for path in (tmp_path / "flowserver-videos").iterdir()] == [".done"]
    moments = [line.split(" RequestId")[0] for line in said if line.startswith("FC ")]
    assert moments.count("FC Initialize Start") == 1
    assert moments[:2] == ["FC Initialize Start", "FC Initialize End"]
    deleted = next(index for index, line in enumerate(said) if "deleted video-" in line)
    assert "FC PreStop Start" in " ".join(said[:deleted])


def test_two_videos_are_transcoded_one_after_the_other(open_server: dict[str, str], tmp_path: Path) -> None:
    variables = open_server | {"VIDEO_FOLDER": str(tmp_path)}
    with functions_served("video", variables):
        runs = [transcode(variables, tmp_path, "2", "60") for _ in range(2)]
        went = sorted((states(run.result()[1]) for run in runs), key=lambda each: each["Running"])
    assert all(before["Succeeded"] <= after["Running"] for before, after in pairwise(went))


def wait_for(url: str, status: str) -> dict[str, Any]:
    """The task, once it has the status."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (task := httpx.get(url, trust_env=False).json()).get("status") != status:
        assert time.monotonic() < deadline, task
        time.sleep(0.1)  # another process, which gives no signal
    return task


def test_a_task_survives_the_server(tmp_path: Path) -> None:
    database_url = f"sqlite:///{tmp_path}/flows.db"
    with ServerProcess(database_url) as server:
        variables = {"FLOWSERVER_URL": server.url, "VIDEO_FOLDER": str(tmp_path)}
        task = f"{server.url}{TASKS}/stateful-async-invocations/harbour"
        with functions_served("video", variables):
            headers = {"X-Fc-Invocation-Type": "Async", "X-Fc-Stateful-Async-Invocation-Id": "harbour"}
            order = b'{"video": "harbour", "seconds": 3}'
            url = f"{server.url}{TASKS}/invocations"
            assert httpx.post(url, content=order, headers=headers, trust_env=False).status_code == 202
            wait_for(task, "Running")
            server.kill()
            with ServerProcess(database_url, port=server.port):
                ended = wait_for(task, "Succeeded")
    assert ended["alreadyRetriedTimes"] == 0
    assert (tmp_path / "flowserver-videos" / "harbour.done").read_text().count("\n") == 3


def test_a_stopped_execution_stops_its_task(open_server: dict[str, str], tmp_path: Path) -> None:
    variables = open_server | {"VIDEO_FOLDER": str(tmp_path)}
    with functions_served("video", variables):
        for command in blocks()[1]:
            typed = command.replace("http://127.0.0.1:8080", open_server["FLOWSERVER_URL"])
            subprocess.run(
                ["sh", "-c", typed],
                cwd=EXAMPLES.parent,
                env=clean_environment(),
                timeout=PATIENCE_SECONDS,
                check=True,
            )
    assert list((tmp_path / "flowserver-videos").iterdir()) == []
