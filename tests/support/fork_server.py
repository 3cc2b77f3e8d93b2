"""A fork server: starts processes that have already imported their program, because an import costs a second of
processor time.

    fork_server = ForkServer("flowserver.cli.serve", environment=environment)
    process = fork_server.start("flowserver", ["serve", "--port", "0"], environment=environment)

Scripts and shells use it, too: in the folder `fork_server.programs` is a `flowserver` that has the server fork it, with
its own arguments, environment, working directory, streams and signals.

The server is a Python process that imports modules once, then forks for every process that is requested. These are real
processes: each has its own memory, environment, folder, limits and signals, and can be killed. How a new Python starts
the program is left to the tests that start one.
"""

import gc
import json
import os
import resource
import runpy
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any

REQUEST_BYTES_MAX = 150_000
"""A request is one packet; environments take a few thousand bytes."""

_NUMBER = struct.Struct("i")

_PROGRAM = f"""#!{sys.executable} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
request = {{
    "module": "flowserver",
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "open_files_max": None,
}}
socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
pid = int.from_bytes(server.recv(4), sys.byteorder)
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, lambda number, frame: os.kill(pid, number))
code = int.from_bytes(server.recv(4), sys.byteorder, signed=True)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


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
        self.programs = Path(tempfile.mkdtemp(prefix="flowserver-"))  # short, because a socket's path is bounded
        program = self.programs / "flowserver"
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(self.programs / "socket"))
            listener.listen(100)
            listener.set_inheritable(True)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.fork_server", str(listener.fileno()), *modules],
                env={**environment, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                cwd=Path(__file__).parents[2],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
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
        shutil.rmtree(self.programs)


# The rest of this file runs in the fork server


def serve_requests(door: socket.socket, listener: socket.socket) -> None:
    """Fork for every request; returns in the requested process, and when the door is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the tests
    tenders: set[int] = set()
    while True:
        ready, _, _ = select([door, listener], [], [])
        tenders -= {tender for tender in tenders if os.waitpid(tender, os.WNOHANG)[0]}
        if door in ready:
            packet, descriptors, _, _ = socket.recv_fds(door, REQUEST_BYTES_MAX, 2)
            if not packet:
                return
            teller, output = descriptors
            caller = socket.socket(fileno=teller)
            streams = [os.open(os.devnull, os.O_RDONLY), output, os.dup(output)]
        else:
            caller, _ = listener.accept()
            packet, streams, _, _ = socket.recv_fds(caller, REQUEST_BYTES_MAX, 3)
        tender = os.fork()
        if tender == 0:
            door.close()
            listener.close()
            _tend(json.loads(packet), caller, streams)
            return
        tenders.add(tender)
        caller.close()
        for stream in streams:
            os.close(stream)


def _tend(request: dict[str, Any], caller: socket.socket, streams: list[int]) -> None:
    """Start the process, report its pid and then its exit code; returns in the process itself, after its program."""
    with caller:
        pid = os.fork()
        if pid == 0:
            caller.close()
            _become(request, streams)
            return
        for stream in streams:
            os.close(stream)
        caller.send(_NUMBER.pack(pid))
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert end is not None
        caller.send(_NUMBER.pack(end.si_status if end.si_code == os.CLD_EXITED else -end.si_status))
        caller.recv(1)  # returns when the caller has read that, or has ended
        os.waitpid(pid, 0)
        os._exit(0)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
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
    for each in sys.argv[2:]:
        import_module(each)
    gc.freeze()
    serve_requests(socket.socket(fileno=os.dup(0)), socket.socket(fileno=int(sys.argv[1])))
