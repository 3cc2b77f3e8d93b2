"""A fork server: starts processes that have already imported their program, because an import costs a second of
processor time.

    fork_server = ForkServer("flowserver.cli.serve", environment=environment)
    process = fork_server.start("flowserver", ["serve", "--port", "0"], environment=environment)

The server is a Python process that imports modules once, then forks for every process that is requested. These are real
processes: each has its own memory, environment, folder, limits and signals, and can be killed. How a new Python starts
the program is left to the tests that start one.
"""

import gc
import json
import os
import resource
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any

REQUEST_BYTES_MAX = 150_000
"""A request is one packet; environments take a few thousand bytes."""

_NUMBER = struct.Struct("i")


class ForkedProcess:
    """A forked process, with the parts of `subprocess.Popen` that tests use; `stdout` includes its stderr.

    As with a child process, its pid is not reused before its exit code has been read.
    """

    def __init__(self, tender: socket.socket, output: int) -> None:
        self._tender = tender
        self.stdout = open(output, encoding="utf-8")  # noqa: SIM115
        self.pid: int = _NUMBER.unpack(tender.recv(_NUMBER.size))[0]
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or a signal's number with a minus; None while it runs."""
        if self.returncode is None and select([self._tender], [], [], 0)[0]:
            return self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code once it has ended; raises TimeoutExpired."""
        if self.returncode is None:
            if not select([self._tender], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            self.returncode = _NUMBER.unpack(self._tender.recv(_NUMBER.size))[0]
            self._tender.close()
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, None]:
        """The rest of its output, once it has ended; at the time limit it is killed. May be called again."""
        killing = threading.Timer(timeout, self.kill)
        killing.start()
        output = ""
        if not self.stdout.closed:
            with self.stdout:
                output = self.stdout.read()
        self.wait()
        killing.cancel()
        return output, None

    def send_signal(self, number: int) -> None:
        """Has no effect once it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """A process that has imported `modules` and forks itself. It ends when it is closed; its processes do not."""

    def __init__(self, *modules: str, environment: Mapping[str, str]) -> None:
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", *modules],
                env={**environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                cwd=Path(__file__).parents[2],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
            )

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path | None = None,
        open_files_max: int | None = None,
    ) -> ForkedProcess:
        """Start `python -m module arguments…`, in the working directory unless another folder is given."""
        request = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder or Path.cwd()),
            "open_files_max": open_files_max,
        }
        tender, theirs = socket.socketpair()
        reading, writing = os.pipe()
        with theirs:
            socket.send_fds(self._door, [json.dumps(request).encode()], [theirs.fileno(), writing])
        os.close(writing)
        return ForkedProcess(tender, reading)

    def close(self) -> None:
        """Start no more processes."""
        self._door.close()
        self._process.wait()


# The rest of this file runs in the fork server


def serve_requests(door: socket.socket) -> None:
    """Fork for every request; returns in the requested process, and when there are no more requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the tests
    tenders: set[int] = set()
    while True:
        packet, descriptors, _, _ = socket.recv_fds(door, REQUEST_BYTES_MAX, 2)
        tenders -= {tender for tender in tenders if os.waitpid(tender, os.WNOHANG)[0]}
        if not packet:
            return
        tender = os.fork()
        if tender == 0:
            door.close()
            _tend(json.loads(packet), *descriptors)
            return
        tenders.add(tender)
        for descriptor in descriptors:
            os.close(descriptor)


def _tend(request: dict[str, Any], teller: int, output: int) -> None:
    """Start the process, report its pid and then its exit code; returns in the process itself, after its program."""
    with socket.socket(fileno=teller) as tests:
        pid = os.fork()
        if pid == 0:
            tests.close()
            _become(request, output)
            return
        os.close(output)
        tests.send(_NUMBER.pack(pid))
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert end is not None
        tests.send(_NUMBER.pack(end.si_status if end.si_code == os.CLD_EXITED else -end.si_status))
        tests.recv(1)  # returns when the tests have read that, or have ended
        os.waitpid(pid, 0)
        os._exit(0)


def _become(request: dict[str, Any], output: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if "PYTHONUNBUFFERED" in os.environ:
        sys.stdout.reconfigure(line_buffering=True)
    if (most := request["open_files_max"]) is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    sys.argv[1:] = request["arguments"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        import_module(each)
    gc.freeze()
    serve_requests(socket.socket(fileno=0))
