"""Engines to test, over databases that can fail, and operations on them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from textwrap import dedent, indent
from typing import Any

from sqlalchemy import Connection, Select
from sqlalchemy.exc import OperationalError

from flowserver.base.clock import Clock
from flowserver.base.json_values import dump_json, load_json
from flowserver.base.limits import Limits
from flowserver.base.task_tokens import TaskTokens
from flowserver.engine.engine import Engine
from flowserver.engine.executions.message_sender import QueueBodies
from flowserver.engine.options import EngineOptions
from flowserver.invokers.brokers import read_outlets
from flowserver.language.graph import ChildLifecycle
from flowserver.machine.events import Event, EventType
from flowserver.operations.operations import Operations
from flowserver.store.cluster.nodes import remove_node
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.sql.database import Database
from flowserver.tracing.spans import Tracer
from tests.engine.called_functions import Functions
from tests.support.clock import ManualClock
from tests.support.following import follow

TOKENS = TaskTokens(b"one key for all nodes of a test")
PATIENCE_SECONDS = 60
"""The time limit for an execution that a test waits for."""


class FragileDatabase(Database):
    """A database that can fail, and whose owner can crash.

    While `broken`, every transaction fails. While `unreadable`, read transactions fail. Write transactions fail that
    `refuses` selects; it reads them just before their commit. The commit that `lose_answer_of` selects succeeds but
    reports a failure, as if its answer were lost. `crashed` is permanent: nothing that its owner still does reaches the
    database, so the rows stay as the crash left them.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.broken = False
        self.unreadable = False
        self.crashed = False
        self.refuses: Callable[[Connection], bool] = lambda _: False
        self.has_lied = False
        """Whether the commit that `lose_answer_of` selects has happened."""
        self._lied_about: Select[Any] | None = None
        self._has_failed = threading.Event()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with super().write() as connection:
            yield connection
            self._check(self.broken or self.crashed or self.refuses(connection))
            lies = self._is_lied_about(connection)
        self._check(lies)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        self._check(self.broken or self.crashed or self.unreadable)
        with super().read() as connection:
            yield connection

    @contextmanager
    def look(self) -> Iterator[Connection]:
        self._check(self.broken or self.crashed or self.unreadable)
        with super().look() as connection:
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        self._check(self.broken or self.crashed)
        with super().session() as connection:
            yield connection

    def lose_answer_of(self, query: Select[Any]) -> None:
        """Lose the answer of one commit: the first after which `query` finds a row. Other commits happen meanwhile, so
        a query must select it.
        """
        self.has_lied = False
        self._lied_about = query

    async def failed(self) -> None:
        """Return when a transaction has failed."""
        assert await asyncio.to_thread(self._has_failed.wait, PATIENCE_SECONDS)
        self._has_failed.clear()

    def _is_lied_about(self, connection: Connection) -> bool:
        if self._lied_about is None or connection.execute(self._lied_about).first() is None:
            return False
        self._lied_about, self.has_lied = None, True
        return True

    def _check(self, fails: bool) -> None:
        if fails:
            self._has_failed.set()
            raise OperationalError("COMMIT", None, Exception("the test makes the database fail"))


class Node:
    """A running engine."""

    def __init__(self, engine: Engine, database: FragileDatabase) -> None:
        self.engine = engine
        self.database = database
        self.operations = Operations.of(engine)

    async def create_flow(self, name: str, steps: str, attributes: str = "") -> None:
        await self.operations.flows.create(name, definition(steps, attributes))

    async def register(self, functions: Functions, *titles: str) -> None:
        for title in titles:
            service, function = title.split("/")
            url = functions.url(title)
            await self.operations.functions.put(service, function, url=url, headers={}, timeout_seconds=None)

    async def start(self, flow: str, name: str, input: Any = None) -> ExecutionRow:
        text = "" if input is None else dump_json(input)
        return await self.operations.executions.start(flow, name=name, input_text=text)

    async def end_of(self, flow: str, name: str) -> ExecutionRow:
        """The execution, once it has ended."""
        row = await self.operations.executions.describe(flow, name, wait_seconds=PATIENCE_SECONDS)
        assert row.stopped_at is not None, [event.type for event in await self.history(flow, name)]
        return row

    async def output_of(self, flow: str, name: str) -> Any:
        """The output of the execution, which must succeed."""
        row = await self.end_of(flow, name)
        assert row.output is not None, (row.status, row.error, row.cause)
        return load_json(row.output)

    async def error_of(self, flow: str, name: str) -> str | None:
        """The error of the execution, which must not succeed."""
        row = await self.end_of(flow, name)
        assert row.output is None
        return row.error

    async def history(self, flow: str, name: str) -> list[Event]:
        return list((await self.operations.executions.history(flow, name, next_token=None, limit=1000)).items)

    def advance(self, clock: ManualClock, *, seconds: float) -> None:
        """Advance the clock, and let the engine notice."""
        clock.advance(seconds=seconds)
        self.engine.timers.notice(0)
        self.engine.retries.notice(0)
        self.engine.schedules.notice(0)

    async def reached(self, flow: str, name: str, type: EventType, step: str = "") -> Event:
        """The first event of that type (and step), once it has happened."""
        async for event in follow(self.operations, flow, name):
            if event.type is type and step in ("", event.step_name):
                return event
        raise AssertionError(f"no {type} in the history of {flow}/{name}")


def take_for_dead(database: Database, node_id: str) -> None:
    """Declare a node dead, as other nodes do after it was silent for a while."""
    with database.write() as connection:
        remove_node(connection, node_id)


def definition(steps: str, attributes: str = "") -> str:
    """A definition of these steps, a YAML list; `attributes` are further lines beside `steps`."""
    return f"version: v1\ntype: flow\n{dedent(attributes).strip()}\nsteps:\n{indent(dedent(steps).strip(), '  ')}\n"


@asynccontextmanager
async def running_node(
    database: FragileDatabase,
    clock: Clock,
    *,
    node_id: str = "node-1",
    limits: Limits | None = None,
    tokens: TaskTokens = TOKENS,
    drain_seconds: float = 0,
    queues: Mapping[str, str] | None = None,
    queue_bodies: QueueBodies = "base64",
    tracer: Tracer | None = None,
    child_lifecycle: ChildLifecycle = "owned",
) -> AsyncIterator[Node]:
    """`queues` are kept by brokers, as in the settings."""
    engine = Engine(
        database,
        clock=clock,
        limits=limits or Limits(),
        tokens=tokens,
        node_id=node_id,
        options=EngineOptions(
            outlets=read_outlets(queues or {}),
            queue_bodies=queue_bodies,
            tracer=tracer,
            child_lifecycle=child_lifecycle,
        ),
    )
    async with engine.running(drain_seconds):
        yield Node(engine, database)
