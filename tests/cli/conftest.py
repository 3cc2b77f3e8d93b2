"""Runs the command line within the test's process; a test that needs a separate process starts one itself."""

import gc
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from flowserver.cli.main import app
from tests.support.server import ServerProcess

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def clean_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine and no context of its user reaches a test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    for name in os.environ:
        if name.startswith("FLOWSERVER_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """`serve` configures logging for its process, which here is the tests'."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(autouse=True)
def no_callbacks_of_the_collector() -> Iterator[None]:
    """Hypothesis registers one; an exception that a signal raises in it, as `--timeout` does, would fail the test."""
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks


@pytest.fixture
def run() -> Run:
    """Run the program: `run("keys", "list")`. A server would take a free port: others may use the default one."""

    def run_program(*arguments: str, stdin: str | bytes = "") -> Result:
        environment = {"FLOWSERVER_PORT": os.environ.get("FLOWSERVER_PORT", "0")}
        words = [str(each) for each in arguments]
        result = CliRunner().invoke(app, words, prog_name="flowserver", input=stdin, env=environment)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run_program


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server that the tests of a module share; they make the first request to it."""
    file = tmp_path_factory.mktemp("server") / "flowserver.db"
    with ServerProcess(f"sqlite:///{file}") as running:
        yield running


@pytest.fixture
def new_url(tmp_path: Path) -> str:
    """The URL of a database that does not exist yet, in an existing folder."""
    (tmp_path / "data").mkdir()
    return f"sqlite:///{tmp_path}/data/flowserver.db"


def one_line(result: Result) -> str:
    """The error message of a failing command: one line on stderr and no other output."""
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return str(line)
