"""The requirements of the examples' READMEs: a server, and `flowserver functions serve`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.access_key import ACCESS_KEY_ID, SECRET, TOKEN, create_database_with_key
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment, start_flowserver

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server without keys; yields the variables that give the examples its address."""
    with ServerProcess(f"sqlite:///{tmp_path_factory.mktemp('open')}/flows.db") as server:
        yield _variables(server)


@pytest.fixture(scope="module")
def keyed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server with a key; yields the variables that give the examples its address and the key."""
    database_url = f"sqlite:///{tmp_path_factory.mktemp('keyed')}/flows.db"
    create_database_with_key(database_url)
    with ServerProcess(database_url) as server:
        yield _variables(server) | {"FLOWSERVER_TOKEN": TOKEN, "AK_ID": ACCESS_KEY_ID, "AK_SECRET": SECRET}


def _variables(server: ServerProcess) -> dict[str, str]:
    return {"FLOWSERVER_URL": server.url, "FNF_ENDPOINT": f"127.0.0.1:{server.port}"}


@contextmanager
def functions_served(example: str, variables: dict[str, str]) -> Iterator[list[str]]:
    """The functions of an example, hosted and registered while the block runs.

    Yields a list that holds the host's lines since then, once the block is over.
    """
    said: list[str] = []
    file = EXAMPLES / example / "functions.yaml"
    environment = clean_environment() | variables | {"PYTHONUNBUFFERED": "1"}
    process = start_flowserver(["functions", "serve", str(file), "--listen", "127.0.0.1:0"], environment)
    try:
        shown = ""
        while "Registered with" not in shown:
            line = process.stdout.readline()
            assert line, f"functions serve ended:\n{shown}"
            shown += line
        yield said
    finally:
        process.terminate()
        said += process.communicate(timeout=PATIENCE_SECONDS)[0].splitlines()


class Run:
    """A program of an example, started in another folder than its own."""

    def __init__(self, program: Path, *arguments: str, variables: dict[str, str], folder: Path) -> None:
        command = [str(program)] if os.access(program, os.X_OK) else [sys.executable, str(program)]
        self._process = subprocess.Popen(
            [*command, *arguments],
            cwd=folder,
            env=clean_environment() | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def result(self) -> tuple[int, str]:
        """The exit code and all output, once it has ended."""
        output, _ = self._process.communicate(timeout=2 * PATIENCE_SECONDS)
        return self._process.returncode, output
