"""Makes the calls that committed turns order, and submits their results as messages.

A call is made at least once: if this process dies, another node makes it again under the same idempotency key.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from flowserver.base.clock import format_instant
from flowserver.base.derived_ids import child_execution_id
from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.limited_log import LimitedLog
from flowserver.base.names import check_execution_name
from flowserver.base.request_ids import call_request_id
from flowserver.concurrency.shutdown import drain
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.context import EngineContext
from flowserver.engine.executions.call_reloading import OrderedCall, WaitingCalls
from flowserver.engine.executions.invocation_submitter import InvocationSubmitter
from flowserver.engine.executions.message_sender import MessageSender
from flowserver.engine.executions.starting import Started, Starter
from flowserver.engine.functions.call_queues import KEPT_BYTES_MAX, KEPT_MAX, CallQueues, QueueKey
from flowserver.engine.functions.call_slots import CallSlot, CallSlots
from flowserver.engine.functions.registry import FunctionRegistry, Lookup
from flowserver.invokers.hooks import Hooks
from flowserver.invokers.invocation import Invocation, Invoker, Replied
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    TopicTarget,
)
from flowserver.language.targets import EXECUTION_NAME, FLOW_NAME, INVOCATION_ID, QUALIFIER
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.messages import Failure, Result, Success, TaskReplied
from flowserver.machine.service_params import child_input
from flowserver.store.executions.due import TaskKey
from flowserver.store.executions.new_executions import NewExecution

log = logging.getLogger(__name__)


class TaskResult(NamedTuple):
    """What a call has come to, and the request id under which it is in the logs, "" if none was made."""

    result: Result
    request_id: str = ""


class Dispatcher:
    """Runs one coroutine per call under way, at most as many as there are `slots`.

    Of a waiting call it holds the key, and the command of up to KEPT_MAX small ones.
    """

    def __init__(
        self,
        context: EngineContext,
        invoker: Invoker,
        registry: FunctionRegistry,
        starter: Starter,
        sender: MessageSender,
        submitter: InvocationSubmitter,
        slots: CallSlots,
        hooks: Hooks,
    ) -> None:
        self._committer = context.committer
        self._lease = context.lease
        self._clock = context.clock
        self._limits = context.limits
        self._invoker = invoker
        self._registry = registry
        self._starter = starter
        self._sender = sender
        self._submitter = submitter
        self._hooks = hooks
        self._orders = WaitingCalls(context)
        self._queues: CallQueues[TaskKey] = CallQueues(registry, slots, self._slot_granted, self._refuse)
        self._calls: dict[TaskKey, asyncio.Task[None]] = {}
        self._queue_of: dict[TaskKey, QueueKey] = {}
        self._kept_orders: dict[TaskKey, OrderedCall] = {}
        self._reported: set[TaskKey] = set()
        """Of those under way: calls whose steps do not wait any more, and which may go on to their own ends."""
        self._draining = False
        self._failures = LimitedLog(log)

    def dispatch(self, caller: Caller, command: InvokeTask, size: int = 0) -> None:
        """Make a task's call, unless a call of the same attempt is under way or waits already.

        `size` is that of the step's documents in bytes: large ones are not kept while the call waits for a slot.
        """
        key = (caller.execution_id, command.scope_id, command.wait_id)
        if self._draining or key in self._calls or key in self._queue_of:
            return
        queue = _queue_key(caller, command)
        slot = self._queues.take_now(queue)
        if slot is not None:
            self._begin(key, slot, (caller, command))
            return
        self._queue_of[key] = queue
        if len(self._kept_orders) < KEPT_MAX and size <= KEPT_BYTES_MAX:
            self._kept_orders[key] = caller, command
        self._queues.join(queue, key)

    def cancel(self, key: TaskKey, *, unless_begun: bool = False) -> bool:
        """Drop a call that no step waits for any more; returns False if this node does not have it.

        With `unless_begun` a call that is under way goes on to its own end, and no later order drops it.
        """
        call = self._calls.get(key)
        if call is not None:
            if unless_begun:
                self._reported.add(key)
            elif key not in self._reported:
                call.cancel()
            return True
        queue = self._forget_waiting(key)
        if queue is None:
            return False
        self._queues.drop(queue, key)
        return True

    def drop_all(self) -> None:
        """Drop all calls after the lease was lost: other nodes make them again, and replies to this node are stale."""
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()
        self._reported.clear()
        self._queues.clear()
        self._queue_of.clear()
        self._kept_orders.clear()

    def begin_no_more(self) -> None:
        """Begin no more calls; those that wait for a slot are left to other nodes."""
        self._draining = True
        self._queues.close()
        self._queue_of.clear()
        self._kept_orders.clear()

    def release_waiting(self, keeps: Callable[[str], bool], limit: int) -> list[TaskKey]:
        """Drop up to `limit` calls that wait for a slot, of executions for which `keeps(execution_id)` is false."""
        released = self._queues.send_away(lambda key: keeps(key[0]), limit)
        for key in released:
            self._forget_waiting(key)
        return released

    def has_begun(self, key: TaskKey) -> bool:
        """Whether the attempt's call is under way, so that it no longer waits for a slot."""
        return key in self._calls

    @property
    def held(self) -> list[TaskKey]:
        """Calls that are under way, or wait with their commands in memory, and that a step must wait for.

        The other calls that wait are read again when they get a slot, and dropped if no step waits for them by then.
        """
        return [*(key for key in self._calls if key not in self._reported), *self._kept_orders]

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a slot."""
        return len(self._queue_of)

    def needs_no_dispatch(self, key: TaskKey) -> bool:
        """Whether the attempt's call is under way or waits here, or is left to other nodes because this one leaves."""
        return self._draining or key in self._calls or key in self._queue_of

    async def drain(self, seconds: float) -> None:
        """Begin no more calls, wait `seconds` for those under way, and drop the rest. Other nodes make them."""
        self.begin_no_more()
        await drain(list(self._calls.values()), seconds)

    def _begin(self, key: TaskKey, slot: CallSlot, order: OrderedCall | None) -> None:
        call = asyncio.create_task(self._call(key, order, slot), name=f"call of {key[0]}")
        self._calls[key] = call
        call.add_done_callback(lambda _: self._forget(key, call, slot))

    def _slot_granted(self, key: TaskKey, slot: CallSlot) -> None:
        order = self._kept_orders.get(key)
        self._forget_waiting(key)
        self._begin(key, slot, order)

    def _refuse(self, key: TaskKey, cause: str) -> None:
        """Fail a call because its function's limit of waiting calls is reached."""
        self._forget_waiting(key)
        refused = TaskResult(Failure("FC.ResourceExhausted", cause))
        call = asyncio.create_task(self._report(key, refused, self._lease.node_id))
        self._calls[key] = call
        call.add_done_callback(lambda _: self._forget(key, call))

    def _forget_waiting(self, key: TaskKey) -> QueueKey | None:
        self._kept_orders.pop(key, None)
        return self._queue_of.pop(key, None)

    def _forget(self, key: TaskKey, call: asyncio.Task[None], slot: CallSlot | None = None) -> None:
        """Forget a call that is over, unless the same attempt has been ordered again."""
        if slot is not None:
            slot.release()  # it still holds the slot if it was cancelled before it ran
        if self._calls.get(key) is call:
            del self._calls[key]
            self._reported.discard(key)

    async def _call(self, key: TaskKey, order: OrderedCall | None, slot: CallSlot) -> None:
        lease = self._lease.node_id
        try:
            order = order or await self._orders.read(key)
            if order is None:
                return  # no step waits for it, or its rows are damaged, which recovery finds
            outcome = await self._perform_safely(*order)
        finally:
            slot.release()
        await self._report(key, outcome, lease)

    async def _report(self, key: TaskKey, outcome: TaskResult, lease: str) -> None:
        envelope = Envelope(key[0], TaskReplied(key[1], key[2], *outcome), lease=lease)
        await retry_until_available(
            lambda: self._committer.submit(envelope)
        )  # a second copy would be stale and do no harm

    async def _perform_safely(self, caller: Caller, command: InvokeTask) -> TaskResult:
        try:
            outcome = await self._perform(caller, command)
        except Exception as error:  # without a result the step would wait for ever
            known = call_request_id(command.idempotency_key, command.attempt)
            log.exception("the call %s failed inside the server; its request id is %s", command.idempotency_key, known)
            cause = f"the server failed to make the call: {type(error).__name__}"
            return TaskResult(Failure("FnF.RuntimeError", cause), known)
        if outcome.request_id and isinstance(outcome.result, Failure):
            self._log_failure(caller, command, outcome.result, outcome.request_id)
        return outcome

    async def _perform(self, caller: Caller, command: InvokeTask) -> TaskResult:
        match command.target:
            case FunctionTarget() as target if command.asynchronous:
                return TaskResult(await self._submitter.submit(caller, command, target), command.submission_request_id)
            case FunctionTarget(_, service, qualifier, function):
                return await self._invoke(caller, command, service, qualifier, function, command.input)
            case FlowTarget(_, flow_name):
                return TaskResult(
                    await retry_until_available(lambda: self._start_child(caller, command, flow_name, "FnF"))
                )
            case QueueTarget() | TopicTarget() as target:
                return TaskResult(await self._sender.send(target, command))
            case ActionTarget(_, "fnf", _):
                name = str((command.params or {}).get(FLOW_NAME))
                return TaskResult(await retry_until_available(lambda: self._start_child(caller, command, name, "fnf")))
            case ActionTarget(_, service, api):
                return await self._call_action(caller, command, service, api)

    async def _invoke(
        self, caller: Caller, command: InvokeTask, service: str, qualifier: str, function: str, event: JsonObject
    ) -> TaskResult:
        endpoint = await self._endpoint(service, qualifier, function)
        if isinstance(endpoint, Failure):
            return TaskResult(endpoint)
        request_id = call_request_id(command.idempotency_key, command.attempt)
        if not self._hooks.is_initialized(endpoint):
            failure = await self._hooks.initialize(endpoint, request_id)
            if failure is not None:
                return TaskResult(failure, request_id)
        invocation_id = (command.params or {}).get(INVOCATION_ID)
        invocation = Invocation(
            service=service,
            qualifier=qualifier,
            function=function,
            event=dump_json(event),
            invocation_id=None if invocation_id is None else str(invocation_id),
            idempotency_key=command.idempotency_key,
            attempt=command.attempt,
            timeout_ms=self._time_left_ms(command.deadline_at),
            flow_name=caller.flow_name,
            execution_name=caller.execution_name,
            step_name=command.step_name,
            request_id=request_id,
        )
        reply = await self._invoker.invoke(invocation, endpoint)
        if isinstance(reply, Replied):
            return TaskResult(Success(reply.output), reply.request_id)
        return TaskResult(Failure(reply.error, reply.cause), reply.request_id or request_id)

    async def _endpoint(self, service: str, qualifier: str, function: str) -> Lookup:
        known = self._registry.cached(service, qualifier, function)
        if known is not None:
            return known
        return await retry_until_available(lambda: self._registry.find(service, qualifier, function))

    async def _call_action(self, caller: Caller, command: InvokeTask, service: str, api: str) -> TaskResult:
        """Call another product's API: the function that the operator has registered in its place."""
        outcome = await self._invoke(caller, command, service, "", api, command.params or {})
        result, request_id = outcome
        if isinstance(result, Success) or result.error.startswith(("FC.", "FnF.", f"{service}.")):
            return outcome
        return TaskResult(Failure(f"{service}.{result.error}", result.cause), request_id)

    async def _start_child(self, caller: Caller, command: InvokeTask, flow_name: str, prefix: str) -> Result:
        """Start a sub-flow. Its id follows from the attempt, so ordering the attempt again finds the same child."""
        child_id = child_execution_id(caller.execution_id, command.scope_id, command.wait_id)
        params = command.params or {}
        name, qualifier = params.get(EXECUTION_NAME), params.get(QUALIFIER)
        request = NewExecution(
            flow_name=flow_name,
            execution_id=child_id,
            name=child_id if name is None else str(name),
            input_text=child_input(params, command.input),
            callback_token=command.token if command.pattern is Pattern.SYNC else None,
            qualifier=None if qualifier is None else str(qualifier),
        )
        try:
            if name is not None:
                check_execution_name(request.name)
            started = await self._starter.start(request, by_step=True)
        except FlowServerError as error:
            return Failure.of(error, prefix)
        if command.pattern is Pattern.SYNC and started.execution_id != child_id:
            cause = f"an execution named {request.name} already runs; a sync step needs one of its own"
            return Failure(f"{prefix}.ExecutionAlreadyExists", cause)
        return Success(self._start_reply(request, started))

    def _start_reply(self, request: NewExecution, started: Started) -> JsonObject:
        return {
            "RequestId": request.execution_id,
            "FlowName": started.flow.name,
            "FlowDefinition": started.flow.definition,
            "Name": request.name,
            "Input": request.input_text,
            "Output": "",
            "Status": "Running",
            "StartedTime": format_instant(self._clock.now_ms()),
            "StoppedTime": "",
        }

    def _log_failure(self, caller: Caller, command: InvokeTask, failure: Failure, request_id: str) -> None:
        """Log a call that failed, without its cause, which the history has and may hold what the function answered."""
        target = command.target.action if isinstance(command.target, ActionTarget) else command.target.arn
        self._failures.write(
            logging.INFO,
            target,
            "the call of %s failed with %s: request id %s, flow %s, execution %s, step %s, attempt %d",
            target,
            failure.error,
            request_id,
            caller.flow_name,
            caller.execution_name,
            command.step_name,
            command.attempt,
        )

    def _time_left_ms(self, deadline_at: int | None) -> int:
        if deadline_at is None:
            return self._limits.function_seconds_max * 1000
        return max(deadline_at - self._clock.now_ms(), 1)


def _queue_key(caller: Caller, command: InvokeTask) -> QueueKey:
    match command.target:
        case FunctionTarget(_, service, qualifier, function) if not command.asynchronous:
            return QueueKey(caller.flow_name, (service, qualifier, function))
        case ActionTarget(action, service, api):
            called = (service, "", api) if service != "fnf" else (action,)
            return QueueKey(caller.flow_name, called, is_function=service != "fnf")
        case target:
            return QueueKey(caller.flow_name, (target.arn,), is_function=False)
