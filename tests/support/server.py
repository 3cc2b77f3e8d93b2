"""A real server process, for tests that use the program from outside: SDKs, crashes, signals, benchmarks.

with ServerProcess(f"sqlite:///{tmp_path}/flows.db") as server:
    httpx.get(f"{server.url}/healthz")
    server.kill()
"""

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.fork_server import ForkedProcess, ForkServer
from tests.support.ports import free_port
from tests.support.stand_ins import path_with_stand_ins

PATIENCE_SECONDS = 60
"""Only a server that hangs takes this long; a test that passes never waits for it."""

IMPORTED = (
    "flowserver.cli.serve",
    "flowserver.hosting.serving",
    "flowserver.cli.remote.functions",
    "alembic.command",
    "alembic.context",
    "uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "flowserver.api.rest.router",
    "flowserver.api.fc.router",
    "flowserver.api.mns.router",
    "flowserver.client.blocking",
    "flowserver.cli.main",
    "flowserver.cli.doctor",
    "flowserver.cli.validate",
    "flowserver.cli.remote.apply",
    "flowserver.cli.remote.executions",
    "flowserver.cli.remote.schedules",
    "flowserver.cli.remote.start",
    "flowserver.cli.remote.topics",
    "httpcore",
)
"""The modules that the program imports when it starts, and for the first request or command of a kind."""

_ADDRESS = re.compile(r'(?:^ *API +|"url": ")(http://[^\s"]+)', re.M)


class ServerProcess:
    """A server on 127.0.0.1 that is ready for requests once the constructor returns.

    Without a `database_url` another setting names it. `arguments` are further options of `serve`, `environment` further
    variables. FLOWSERVER_ variables and proxies of the tests' own environment do not reach the server. `open_files_max`
    is the system's limit on its open files. The process is forked from a process that has imported the program; with
    `python`, the path of an interpreter, a new interpreter starts it, and imports nothing from the working folder.
    Raises AssertionError, with the log, if the server does not start.
    """

    def __init__(
        self,
        database_url: str | None,
        *arguments: str,
        port: int | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        open_files_max: int | None = None,
        python: str | None = None,
    ) -> None:
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._over = False
        command = ["serve", "--port", str(free_port() if port is None else port)]
        if database_url is not None:
            command += ["--database-url", database_url]
        variables = clean_environment() | dict(environment or {})
        self.process = (
            start_flowserver([*command, *arguments], variables, folder=folder, open_files_max=open_files_max)
            if python is None
            else _start_interpreter(
                [python, "-P", "-m", "flowserver", *command, *arguments], variables, folder, open_files_max
            )
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.wait_for_log("  Access ", '"access": ')  # the last line of the announcement
        except BaseException:
            self.kill()
            raise
        address = _ADDRESS.search(self.log)
        assert address is not None
        self.url = address[1]
        """Base URL without a final slash."""

    @property
    def log(self) -> str:
        """All output so far, on stdout and stderr; complete after `stop` and `kill`."""
        with self._news:
            return "".join(self._lines)

    @property
    def port(self) -> int:
        """The port that the server listens on, for a later server on the same port."""
        return int(self.url.rpartition(":")[2])

    def wait_for_log(self, *texts: str) -> None:
        """Return when a line that holds one of `texts` has been printed; AssertionError if the process ends before."""
        with self._news:
            self._news.wait_for(lambda: self._over or self._has_printed(texts), PATIENCE_SECONDS)
            assert self._has_printed(texts), f"no {texts} from the server:\n" + "".join(self._lines)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the server by a signal; it must end with exit code 0."""
        self.process.send_signal(number)
        assert self._wait() == 0, self.log

    def kill(self) -> None:
        """End the server as a crash would; no effect if it has ended."""
        self.process.kill()
        self._wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        """Stop the server if it still runs; after a failed test, kill it."""
        if self.process.poll() is None and kind is None:
            self.stop()
        else:
            self.kill()

    def _wait(self) -> int:
        try:
            code = self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server did not stop:\n" + self.log) from None
        self._reader.join(PATIENCE_SECONDS)
        return code

    def _has_printed(self, texts: Sequence[str]) -> bool:
        return any(text in line for line in self._lines for text in texts)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                with self._news:
                    self._lines.append(line)
                    self._news.notify_all()
        with self._news:
            self._over = True
            self._news.notify_all()


def start_flowserver(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    open_files_max: int | None = None,
) -> ForkedProcess:
    """Start the program with these arguments, in a process that need not import it."""
    return start_module("flowserver", arguments, environment, folder=folder, open_files_max=open_files_max)


def start_module(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    open_files_max: int | None = None,
) -> ForkedProcess:
    """Start `python -m module` with these arguments, in a process that need not import flowserver."""
    return _fork_server().start(
        module, arguments, environment=environment, folder=folder, open_files_max=open_files_max
    )


@cache
def _fork_server() -> ForkServer:
    """One fork server for all processes that these tests start."""
    fork_server = ForkServer(*IMPORTED, environment=clean_environment())
    atexit.register(fork_server.close)
    return fork_server


def path_with_flowserver() -> str:
    """A PATH for scripts: its `flowserver` is the program, in a process that need not import it."""
    return f"{_fork_server().programs}:{Path(sys.executable).parent}:{clean_environment()['PATH']}"


def _start_interpreter(
    command: list[str], environment: Mapping[str, str], folder: Path | None, open_files_max: int | None
) -> subprocess.Popen[str]:
    if open_files_max is not None:
        command = ["sh", "-c", 'ulimit -n "$0" && exec "$@"', str(open_files_max), *command]
    return subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )


def clean_environment() -> dict[str, str]:
    """The environment without variables that affect a flowserver or a client: its settings, and proxies.

    Its PATH has curl and ssh-keygen on every machine.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FLOWSERVER_") and not name.lower().endswith("_proxy")
    }
    return kept | {"PATH": path_with_stand_ins(kept.get("PATH", os.defpath))}
