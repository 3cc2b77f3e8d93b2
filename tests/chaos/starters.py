"""Ways to start server processes and to get their exit codes."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Protocol

from tests.chaos.node import NodeArguments
from tests.support.fork_server import ForkedProcess, ForkServer
from tests.support.server import IMPORTED, clean_environment

PROGRAM = "tests.chaos.node"
END_SECONDS = 90
"""Only a process that hangs takes this long to end."""


class Starter(Protocol):
    """Starts processes."""

    def start(self, arguments: NodeArguments) -> int:
        """Start one; returns its pid."""
        ...

    def exit_code(self, pid: int) -> int:
        """The exit code of a process that has ended, or its signal's number with a minus. Call it once."""
        ...


@contextlib.contextmanager
def plain_starter() -> Iterator[Starter]:
    """Each server is a new Python process."""
    starter = _PlainStarter()
    yield starter
    for process in starter.started.values():
        process.wait(END_SECONDS)


@contextlib.contextmanager
def fast_starter() -> Iterator[Starter]:
    """Each server is forked from a process that has imported everything."""
    with contextlib.closing(ForkServer(*IMPORTED, "tests.chaos.clock", environment=clean_environment())) as fork_server:
        starter = _ForkedStarter(fork_server)
        yield starter
        for process in starter.started.values():
            process.wait(END_SECONDS)


class _PlainStarter:
    def __init__(self) -> None:
        self.started: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, arguments: NodeArguments) -> int:
        process = subprocess.Popen([sys.executable, "-m", PROGRAM, arguments.text()], env=_environment())
        self.started[process.pid] = process
        return process.pid

    def exit_code(self, pid: int) -> int:
        return self.started.pop(pid).wait(END_SECONDS)


class _ForkedStarter:
    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self.started: dict[int, ForkedProcess] = {}

    def start(self, arguments: NodeArguments) -> int:
        process = self._fork_server.start(PROGRAM, [arguments.text()], environment=clean_environment())
        process.stdout.close()  # its output goes to a file
        self.started[process.pid] = process
        return process.pid

    def exit_code(self, pid: int) -> int:
        return self.started.pop(pid).wait(END_SECONDS)


def _environment() -> dict[str, str]:
    return clean_environment() | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
