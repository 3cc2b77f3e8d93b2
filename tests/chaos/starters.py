"""Ways to start server processes and to learn how they ended."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Protocol

from tests.chaos.node import NodeArguments
from tests.support.server import clean_environment

MODULE = [sys.executable, "-m", "tests.chaos.node"]
END_SECONDS = 90
"""Only a process that hangs takes as long to end."""


class Starter(Protocol):
    """Starts processes."""

    def start(self, arguments: NodeArguments) -> int:
        """Start one; returns its pid."""
        ...

    def exit_code(self, pid: int) -> int:
        """How a process that has ended did so: its exit code, or a signal's number with a minus. To be asked once."""
        ...


@contextlib.contextmanager
def plain_starter() -> Iterator[Starter]:
    """Each server is a fresh Python."""
    starter = _Plain()
    yield starter
    for process in starter.started.values():
        process.wait(END_SECONDS)


@contextlib.contextmanager
def fast_starter() -> Iterator[Starter]:
    """Each server is forked from a process that has imported everything."""
    with subprocess.Popen(
        [*MODULE, "--forge"], env=_environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as forge:
        yield _Forge(forge)
        assert forge.stdin is not None
        forge.stdin.close()


class _Plain:
    def __init__(self) -> None:
        self.started: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, arguments: NodeArguments) -> int:
        process = subprocess.Popen([*MODULE, arguments.text()], env=_environment())
        self.started[process.pid] = process
        return process.pid

    def exit_code(self, pid: int) -> int:
        return self.started.pop(pid).wait(END_SECONDS)


class _Forge:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, arguments: NodeArguments) -> int:
        return self._ask(arguments.text())

    def exit_code(self, pid: int) -> int:
        return self._ask(json.dumps(pid))

    def _ask(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _environment() -> dict[str, str]:
    return clean_environment() | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
