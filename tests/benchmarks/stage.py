"""The environment of every workload: a database, real servers, the functions, clients, and the servers' counters."""

import asyncio
import os
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.bytecode import compiled
from tests.benchmarks.client import Client, Reply, rpc
from tests.benchmarks.credentials import OPEN, Credentials, create_key
from tests.benchmarks.function import PATHS, FunctionProcess
from tests.benchmarks.primary import Primary
from tests.support.processes import (
    cpu_seconds_of,
    family_of,
    machine_cpu_seconds,
    peak_bytes_of,
    resident_bytes_of,
    written_bytes_of,
)
from tests.support.server import ServerProcess, clean_environment

Counters = dict[str, float]


class FunctionReports(asyncio.Protocol):
    """The lines that the functions print for the load generator."""

    def __init__(self) -> None:
        self._tokens: dict[str, asyncio.Future[str]] = {}
        self._rest = b""
        self.on_turn: Callable[[int, float], None] = lambda _turn, _seconds: None
        """Called with the turn of a polling loop, and the instant of its call by `time.perf_counter`."""
        self.on_token: Callable[[str], None] = lambda _token: None
        """Called with each task token that a function receives."""

    def token_of(self, execution: str) -> asyncio.Future[str]:
        """The task token of an execution, once its function has received it."""
        return self._tokens.setdefault(execution, asyncio.get_running_loop().create_future())

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, *rest = line.decode().split()
            if word == "token":
                self._on_token(*rest)
            elif word == "poll":
                self.on_turn(int(rest[0]), int(rest[1]) / 1e9)

    def _on_token(self, execution: str, token: str) -> None:
        self.on_token(token)
        future = self.token_of(execution)
        if not future.done():  # the second time if the call was repeated
            future.set_result(token)


@dataclass(frozen=True)
class Shape:
    """The number of servers, the number of processes of each, and how clients prove who they are
    (`credentials.KINDS`)."""

    nodes: int = 1
    processes: int = 1
    keys: str = "open"

    @property
    def flags(self) -> tuple[str, ...]:
        """Options of `serve`."""
        return () if self.processes == 1 else ("--processes", str(self.processes))


@dataclass
class Stage:
    """Servers over an empty database, with the functions registered; `open` and `close` it in one loop."""

    database_url: str
    shape: Shape
    servers: list[ServerProcess]
    function: FunctionProcess
    primary: Primary | None
    credentials: Credentials = OPEN
    reports: FunctionReports = field(default_factory=FunctionReports)
    clients: list[Client] = field(default_factory=list)
    _checkpointed_bytes: int = 0
    """The bytes that `checkpoint` has written in place of the servers."""
    _pipe: asyncio.ReadTransport = field(init=False)

    async def open(self) -> None:
        """Connect, and register the functions."""
        loop = asyncio.get_running_loop()
        self._pipe, _ = await loop.connect_read_pipe(lambda: self.reports, self.function.lines)
        self.clients = [Client(server.url, self.credentials) for server in self.servers]
        for path in PATHS:
            reply = await self.client.put(f"/v1/functions/bench/{path}", {"url": f"{self.function.url}/{path}"})
            assert reply.status in (200, 201), reply.body

    async def close(self) -> None:
        """Disconnect."""
        self._pipe.close()
        for client in self.clients:
            client.close()
        await asyncio.sleep(0)  # the loop releases closed connections in its next round

    @property
    def client(self) -> Client:
        """Requests to the first server."""
        return self.clients[0]

    async def create_flow(self, name: str, definition: str) -> None:
        """CreateFlow, unless another workload has created it on this stage."""
        action = rpc("CreateFlow", Name=name, Definition=definition, Description="-", Type="FDL")
        reply = await self.client.call(action)
        assert reply.status == 200 or b"FlowAlreadyExists" in reply.body, reply.body

    async def describe_end(self, flow: str, execution: str) -> Reply:
        """Wait for an execution's end by long polls; returns its description, which includes the end."""
        action = rpc("DescribeExecution", FlowName=flow, ExecutionName=execution, WaitTimeSeconds=60)
        while True:
            reply = await self.client.call(action)
            if b'"Status":"Running"' not in reply.body:
                return reply

    async def until_quiet(self) -> None:
        """Wait until two successive readings show no calls and no uncommitted changes at the first server."""
        before = ""
        while True:
            text = (await self.client.get("/metrics")).body.decode()
            gauges = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("flowserver_"))
            busy = ("flowserver_calls_in_flight", "flowserver_calls_waiting", "flowserver_pending_messages")
            commits = gauges["flowserver_commits_total"]
            if commits == before and not any(float(gauges[name]) for name in busy):
                return
            before = commits
            await asyncio.sleep(0.01)

    def checkpoint(self) -> None:
        """Copy all commits into the SQLite file, and count the written bytes as the server's.

        The server does this for every 1,000 pages of its log. A workload that has written less would leave the cost to
        the next measurement. The first server must be quiet. PostgreSQL makes its checkpoints by the clock, so nothing
        is done there.
        """
        if self.primary is not None:
            return
        before = written_bytes_of(os.getpid())
        with closing(sqlite3.connect(_sqlite_file(self.database_url))) as connection:
            _, logged, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        assert logged == moved, "the server is not quiet"
        self._checkpointed_bytes += written_bytes_of(os.getpid()) - before

    async def kill_and_restart(self) -> float:
        """Kill the only server, then start another; returns the instant of the kill."""
        self.servers[0].kill()
        self.client.close()
        began = time.perf_counter()
        flags = self.shape.flags
        self.servers[0] = ServerProcess(self.database_url, *flags, environment=compiled(), python=sys.executable)
        self.clients = [Client(self.servers[0].url, self.credentials)]
        return began

    def cpu_seconds(self) -> float:
        """The servers' processor time so far."""
        return sum(map(cpu_seconds_of, self._processes()))

    def resident_bytes(self) -> int:
        """The first server's present resident memory; memory shared by its processes counts for each."""
        return sum(map(resident_bytes_of, family_of(self.servers[0].process.pid)))

    def peak_bytes(self) -> int:
        """The peak memory of the largest server; memory shared by its processes counts for each."""
        return max(sum(map(peak_bytes_of, family_of(server.process.pid))) for server in self.servers)

    def _processes(self) -> list[int]:
        return [pid for server in self.servers for pid in family_of(server.process.pid)]

    def read(self) -> Counters:
        """The present values of counters that only grow."""
        written = sum(map(written_bytes_of, self._processes())) + self._checkpointed_bytes
        counters = {
            "seconds": time.perf_counter(),
            "cpu_seconds": self.cpu_seconds(),
            "written_bytes": float(written),
            "function_cpu_seconds": cpu_seconds_of(self.function.process.pid),
            "machine_cpu_seconds": machine_cpu_seconds(),
            "generator_cpu_seconds": time.process_time(),
            "requests": float(sum(client.requests for client in self.clients)),
        }
        if self.primary is None:
            return counters | {"size_bytes": float(_sqlite_bytes(self.database_url))}
        primary = self.primary.read()
        counters["written_bytes"] += primary["written_bytes"]
        counters["size_bytes"] = primary["size_bytes"]
        return counters | {f"postgres_{name}": value for name, value in primary.items()}


@contextmanager
def staged(postgres_url: str | None, shape: Shape, python: str = sys.executable) -> Iterator[Stage]:
    """Start everything over this PostgreSQL database or a new SQLite file, and stop it at the end.

    `python` runs the first server; it may belong to another checkout's environment.
    """
    # a check holds thousands of connections open, and the servers inherit the limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flowserver-bench-")))
        url = postgres_url or f"sqlite:///{folder}/bench.db"
        credentials = create_key(shape.keys, url, clean_environment() | compiled(), python)
        function = stack.enter_context(FunctionProcess(compiled()))
        servers = [ServerProcess(url, "--migrate", *shape.flags, environment=compiled(), python=python)]
        stack.callback(_stop_all, servers)  # the servers that run at the end; some workloads replace them
        for _ in range(1, shape.nodes):
            servers.append(ServerProcess(url, *shape.flags, environment=compiled(), python=sys.executable))
        primary = stack.enter_context(Primary(url)) if postgres_url else None
        yield Stage(url, shape, servers, function, primary, credentials)


def _stop_all(servers: list[ServerProcess]) -> None:
    for server in servers:
        server.kill()


def _sqlite_bytes(url: str) -> int:
    name = _sqlite_file(url)
    files = (Path(name), Path(f"{name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _sqlite_file(url: str) -> str:
    return url.removeprefix("sqlite:///")
