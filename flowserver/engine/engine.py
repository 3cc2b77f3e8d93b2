"""Engine: one node's loops, wired together, started and stopped in order."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.clock import Clock
from flowserver.base.limits import Limits
from flowserver.engine.batches import BatchResult, Envelope, Workshop
from flowserver.engine.callbacks import Callbacks
from flowserver.engine.committer import Committer
from flowserver.engine.definitions import Definitions
from flowserver.engine.dispatcher import Caller, Dispatcher
from flowserver.engine.registry import FunctionRegistry
from flowserver.engine.starting import Starter
from flowserver.engine.sweeper import Sweeper
from flowserver.engine.timekeeper import Timekeeper
from flowserver.engine.tokens import TaskTokens
from flowserver.engine.watchers import Watchers
from flowserver.invokers.http import HttpInvoker
from flowserver.machine.commands import CancelInvocation, InvokeTask, ReportCallback, SubmitInvocation
from flowserver.machine.mappings import MissingSource
from flowserver.machine.messages import Continue, Result
from flowserver.store.database import Database
from flowserver.store.nodes import register_node, remove_node
from flowserver.store.saving import Changes, invocation_rows

log = logging.getLogger(__name__)


class Engine:
    """Everything that runs in one server process. Make and use it inside one event loop."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        limits: Limits,
        missing_source: MissingSource,
        tokens: TaskTokens,
        node_id: str,
    ) -> None:
        self.database = database
        self.clock = clock
        self.limits = limits
        self.tokens = tokens
        self.node_id = node_id
        workshop = Workshop(clock, limits, missing_source, tokens, node_id, Definitions())
        self.committer = Committer(database, workshop, self)
        self.watchers = Watchers()
        self.registry = FunctionRegistry(database)
        self.starter = Starter(database, self.committer, limits)
        self.invoker = HttpInvoker(limits)
        self.dispatcher = Dispatcher(self.committer, self.invoker, self.registry, self.starter, clock, limits)
        self.callbacks = Callbacks(self.committer, tokens)
        self.timekeeper = Timekeeper(database, self.committer, clock)
        self.sweeper = Sweeper(database, self.committer, self.dispatcher, self.callbacks, clock, node_id)
        self._following: set[asyncio.Task[object]] = set()

    @contextlib.asynccontextmanager
    async def running(self, drain_seconds: float) -> AsyncIterator[None]:
        """The engine at work; on leaving it finishes calls under way for `drain_seconds` and gives the rest away."""
        now = self.clock.now_ms()
        async with contextlib.AsyncExitStack() as leaving:
            leaving.push_async_callback(self.invoker.close)
            leaving.push_async_callback(self._abandon_messages)
            self.committer.start()
            leaving.push_async_callback(self.committer.stop)
            await self.committer.write(lambda connection: register_node(connection, self.node_id, now))
            leaving.push_async_callback(self._unregister)
            self.sweeper.start()
            leaving.push_async_callback(self.sweeper.stop)
            leaving.push_async_callback(self.dispatcher.drain, drain_seconds)
            self.timekeeper.start()
            leaving.push_async_callback(self.timekeeper.stop)
            yield

    async def _unregister(self) -> None:
        try:
            await self.committer.write(lambda connection: remove_node(connection, self.node_id))
        except SQLAlchemyError as error:
            log.warning("this node stays registered until it has been silent for a while: %s", error)

    async def _abandon_messages(self) -> None:
        """Let go of messages that came too late to be committed; whoever sweeps next finds their reasons."""
        for task in self._following:
            task.cancel()
        if self._following:
            await asyncio.wait(self._following)

    def committed(self, result: BatchResult) -> None:
        """Act on a durable batch: make its calls, note its timers, wake who waits for its executions."""
        for changes in result.changes:
            self._act(changes)
        for execution_id in result.continuing:
            self._follow(Envelope(execution_id, Continue()))

    def _act(self, changes: Changes) -> None:
        execution = changes.stored.execution
        caller = Caller.of(execution)
        for command in changes.commands:
            match command:
                case InvokeTask():
                    self.dispatcher.dispatch(caller, command)
                case CancelInvocation(scope_id, wait_id):
                    self.dispatcher.cancel((execution.execution_id, scope_id, wait_id))
                case SubmitInvocation():
                    pass  # made below, from the rows that the commit has kept
                case ReportCallback(token, result):
                    self._report(execution.execution_id, token, result)
        for invocation in invocation_rows(changes, self.node_id):
            self.dispatcher.dispatch_asynchronous(invocation)
        for scope_id in changes.touched:
            wake_at = execution.scopes[scope_id].wake_at
            if wake_at is not None:
                self.timekeeper.notice(wake_at)
        if changes.stored.version == 0:
            self.timekeeper.notice(execution.deadline_at)
        self.watchers.notify(execution.execution_id, ended=not execution.is_running)

    def _report(self, execution_id: str, token: str, result: Result) -> None:
        self._keep(asyncio.create_task(self.callbacks.deliver(execution_id, token, result)))

    def _follow(self, envelope: Envelope) -> None:
        self._keep(asyncio.create_task(self.committer.submit(envelope)))

    def _keep(self, task: asyncio.Task[object]) -> None:
        """Hold on to a message on its way; if it is lost, the sweeper finds its reason in the rows."""
        self._following.add(task)
        task.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[object]) -> None:
        self._following.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.warning("a message was not committed and waits for the sweeper: %s", task.exception())
