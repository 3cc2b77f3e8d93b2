"""The engine of one node: starts and stops its parts in order, and acts on commits and notices."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, assert_never

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.concurrency.shutdown import drain
from flowserver.concurrency.threads import run_aside
from flowserver.engine.commit.batch import BatchResult
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.committer import all_of
from flowserver.engine.executions.recovery import stop_of_ownerless
from flowserver.engine.executions.step_calls import log_fields
from flowserver.engine.parts import Parts
from flowserver.machine.commands import (
    Caller,
    CancelInvocation,
    Command,
    InvokeTask,
    ReportCallback,
    StopInvocation,
    StopSubFlow,
)
from flowserver.machine.messages import Continue
from flowserver.machine.state import Execution
from flowserver.store.cluster.nodes import mark_leaving, newest_instant, register_node, remove_node, remove_other_nodes
from flowserver.store.cluster.notices import Notice
from flowserver.store.executions.crash_marks import clear_at_work_of
from flowserver.store.executions.saving import Changes
from flowserver.store.invocations.leases import release_all_but
from flowserver.store.sql.errors import reason_of

log = logging.getLogger(__name__)


class Engine(Parts):
    """Everything that runs in one server process. Make and use it inside one event loop."""

    on_crash: Callable[[], object] | None = None
    """Called once the writer has crashed: nothing is committed any more, and the process must end."""

    @contextlib.asynccontextmanager
    async def running(self, drain_seconds: float) -> AsyncIterator[None]:
        """Run the engine. On leaving, calls under way have `drain_seconds` to end; other nodes make the rest again."""
        async with contextlib.AsyncExitStack() as leaving:
            for threads in self.threads:
                leaving.callback(threads.close)
            for connections in self.connections:
                leaving.push_async_callback(connections.close)
            # Messages that came too late to be committed: recovery finds their reasons.
            leaving.push_async_callback(drain, self._following, 0)
            await run_aside(self._register)
            if not self.database.is_sqlite:
                log.info("this is node %s", self.lease.node_id)
            self.committer.on_crash = self._crashed
            self.committer.start()
            leaving.push_async_callback(self.committer.stop)
            leaving.push_async_callback(self._unregister)
            self.membership.start()
            leaving.push_async_callback(self.membership.stop)
            leaving.push_async_callback(self._drain, drain_seconds)
            for loop in self.loops:
                loop.start()
            leaving.push_async_callback(self.leave)
            yield

    async def leave(self) -> None:
        """Take no more work and hand over calls that have not begun; calls under way continue."""
        if self.lease.is_leaving:
            return
        self.lease.is_leaving = True
        self.dispatcher.begin_no_more()  # first: calls committed from now on have no node, and other nodes make them
        self.invocations.begin_no_more()
        for loop in self.loops:
            await loop.stop()
        try:
            await self.committer.write(self._hand_over)
            await self.task_recovery.release_all()
        except SQLAlchemyError as error:
            log.warning("other nodes will find out later that this node leaves: %s", reason_of(error))
        self.membership.announce().sweep = True

    def _hand_over(self, connection: Connection) -> None:
        node_id = self.lease.node_id
        mark_leaving(connection, node_id)
        release_all_but(connection, node_id, self.invocations.under_way)

    async def _drain(self, seconds: float) -> None:
        await asyncio.gather(*(part.drain(seconds) for part in self.drained))

    def _register(self) -> None:
        with self.database.write() as connection:
            node_id = self.lease.node_id
            self.clock_watch.begin(newest_instant(connection))
            register_node(connection, node_id, self.database.session_name, self.clock.now_ms())
            if self.database.is_sqlite:
                remove_other_nodes(connection, node_id)

    async def _unregister(self) -> None:
        try:
            # The id at that moment: this node may have been declared dead and have a new id for this transaction.
            await self.committer.write(self._remove)
        except SQLAlchemyError as error:
            log.warning("this node stays registered until it has been silent for a while: %s", reason_of(error))
        self.membership.announce().sweep = True
        await self.membership.sent()

    def _remove(self, connection: Connection) -> None:
        clear_at_work_of(connection, self.lease.node_id)
        remove_node(connection, self.lease.node_id)

    def committed(self, result: BatchResult) -> None:
        """Act on a durable batch: make its calls, note its timers, wake requests that wait for its executions."""
        if result.seconds is not None:
            self.metrics.committed(len(result.answers), result.seconds)
        for changes in result.changes:
            self._act(changes)
        for execution_id in result.continuing:
            self.follow(self.committer.submit(Envelope(execution_id, Continue())))
        for execution_id in result.parked:
            self.watchers.wake(execution_id, ended=True)
            self._tell_nodes(execution_id, ended=True)

    def _crashed(self) -> None:
        """The writer has crashed. No caller waits for what cannot come any more: all get their answers now."""
        self.answer_waiting()
        self.interruptible.interrupt()
        if self.on_crash is not None:
            self.on_crash()

    def answer_waiting(self) -> None:
        """Answer the requests that wait for an execution or a message as if their time were over."""
        self.watchers.stop()
        self.queues.release()

    def lease_lost(self) -> None:
        """Drop what is under way, which other nodes take over, and go on as a new node."""
        self.dispatcher.drop_all()
        self.invocations.drop_all()
        self.recovery.sweep_soon()

    def nodes_changed(self) -> None:
        """Look for work that another node left, or whose notice was lost."""
        self.recovery.sweep_soon()
        for loop in self.due_loops.values():
            loop.notice()

    def heard(self, notice: Notice) -> None:
        """Act on another node's notice."""
        for execution_id, over in notice.changed.items():
            self.watchers.wake(execution_id, ended=over)
            if over:
                self.schedules.execution_ended(execution_id)
        for source, instant_ms in notice.due.items():
            if source in self.due_loops:
                self.due_loops[source].notice(instant_ms)
        if notice.sweep:
            self.recovery.sweep_soon()
        if notice.functions:
            self.endpoints.forget()
            self.invocations.settings.forget()
        for queue in notice.queues:
            self.queues.scan_soon(queue)
        for key in notice.dropped:
            self.dispatcher.cancel(key)
        for key in notice.dropped_unless_begun:
            self.dispatcher.cancel(key, unless_begun=True)

    def lease_is_lost(self) -> None:
        """Commit an empty change: the writer finds that the lease is lost and takes a new one."""
        if not self.lease.is_leaving:
            self.follow(self.committer.write(lambda _: None))

    async def execution_unparked(self, execution_id: str) -> None:
        """Continue an execution that was unparked: its ready scopes now, then what fell due or was lost meanwhile."""
        await self.committer.submit(Envelope(execution_id, Continue()))
        self.timers.note_due()
        self.left_to_others()

    def functions_changed(self) -> None:
        """Forget what is cached of functions, here and on other nodes, after a registration or its settings changed."""
        self.endpoints.forget()
        self.invocations.settings.forget()
        if not self.membership.is_alone:
            self.membership.announce().functions = True

    def left_to_others(self) -> None:
        """Have all nodes sweep: there is work that this node does not do."""
        self.recovery.sweep_soon()
        if not self.membership.is_alone:
            self.membership.announce().sweep = True

    def pauses_until(self, instant_ms: int) -> None:
        """Take the invocation up again at that instant (ms)."""
        self.retries.note_due(instant_ms)

    def is_to_be_delivered(self) -> None:
        """Deliver the result of an invocation that has ended."""
        self.deliveries.note_due()

    def follow(self, work: Coroutine[Any, Any, object]) -> None:
        """Run work in the background that recovery repeats if it fails."""
        task = asyncio.create_task(work)
        self._following.add(task)  # asyncio itself keeps no task alive
        task.add_done_callback(self._let_go)

    def _act(self, changes: Changes) -> None:
        execution = changes.stored.execution
        if changes.is_only_taken_up:
            self.recovery.sweep_soon()  # which delivers the result if it has one
            return
        caller = Caller(execution.execution_id, execution.flow_name, execution.name)
        for command in changes.commands:
            self._carry_out(execution, caller, command)
        self._stop_unneeded(changes)
        for scope_id in changes.touched & execution.scopes.keys():
            wake_at = execution.scopes[scope_id].wake_at
            if wake_at is not None:
                self.timers.note_due(wake_at)
        if changes.begins_to_wait and execution.waiting_steps:
            form = "flow %(flow)s, execution %(execution)s waits for a redrive: step %(step)s failed with %(error)s"
            which = {"step": execution.failed_step, "error": execution.error}
            self._waits_log.write(logging.INFO, execution.flow_name, form, {**log_fields(caller), **which})
        begins = changes.is_new or changes.has_begun_again
        if begins or changes.is_redriven:
            self.timers.note_due(execution.deadline_at)
        ended = self.attempts.committed(execution.execution_id, changes.events)
        if self.traces is not None:
            for look_up in self.traces.committed(changes, ended, self.clock.now_ms()):
                self.follow(look_up)
        counts = self.metrics.flows.of(execution.flow_name)
        counts.started += changes.is_new
        for attempt in ended:
            counts.has_tried(attempt)
        if not execution.is_running:
            self.metrics.ended(execution.status)
            counts.has_ended(execution.status, execution.error, (self.clock.now_ms() - execution.started_at) / 1000)
            self.schedules.execution_ended(execution.execution_id)
        self.starter.note_change(is_new=begins, is_running=execution.is_running)
        self.watchers.notify_change(execution, changes.events)
        self._tell_nodes(execution.execution_id, ended=not execution.is_running)
        if self.lease.is_leaving and changes.commands:
            self.membership.announce().sweep = True

    def _stop_unneeded(self, changes: Changes) -> None:
        if changes.unwanted:
            self.follow(self.invocations.stop_all(changes.unwanted))
        if changes.ownerless:
            self.follow(all_of(self.committer.submit(stop_of_ownerless(each)) for each in changes.ownerless))

    def _carry_out(self, execution: Execution, caller: Caller, command: Command) -> None:
        match command:
            case InvokeTask(scope_id=scope_id) if scope_id in execution.scopes:
                self.dispatcher.dispatch(caller, command, execution.scopes[scope_id].document_bytes)
            case CancelInvocation(scope_id, wait_id, unless_begun):
                key = execution.execution_id, scope_id, wait_id
                if not self.dispatcher.cancel(key, unless_begun=unless_begun) and not self.membership.is_alone:
                    notice = self.membership.announce()
                    (notice.dropped_unless_begun if unless_begun else notice.dropped).append(key)
            case InvokeTask() | StopInvocation() | StopSubFlow():
                pass  # the wait has ended already; `_act` stops the invocations and sub-flows that were found
            case ReportCallback(token, result):
                self.follow(self.callbacks.deliver(execution.execution_id, token, result))
            case _:
                assert_never(command)

    def _tell_nodes(self, execution_id: str, *, ended: bool) -> None:
        if not self.membership.is_alone:
            self.membership.announce().changed[execution_id] = ended

    def _let_go(self, task: asyncio.Task[object]) -> None:
        self._following.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.warning("a message was not committed and waits for recovery: %s", task.exception())
