"""Makes the calls that committed turns order, and brings their results back as messages.

A call is made at least once: if this process dies, another orders it again under the same idempotency key.
"""

import asyncio
import logging
from collections.abc import Callable
from itertools import islice

from flowserver.base.clock import Clock, format_instant
from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import Json, JsonObject, dump_json
from flowserver.base.limits import Limits
from flowserver.base.names import child_execution_id
from flowserver.engine.batches import Envelope
from flowserver.engine.caller import Caller
from flowserver.engine.committer import Committer
from flowserver.engine.gates import GateFull, Gates
from flowserver.engine.hooks import Hooks
from flowserver.engine.lease import Lease
from flowserver.engine.persisting import persist
from flowserver.engine.places import Callee, Places
from flowserver.engine.registry import FunctionRegistry, Lookup
from flowserver.engine.sending import Sender
from flowserver.engine.starting import Started, Starter, StartRequest, as_failure, check_execution_name
from flowserver.engine.submitting import Submitter
from flowserver.invokers.invocation import Endpoint, Failed, Invocation, Invoker, Replied
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    Target,
    TopicTarget,
)
from flowserver.language.targets import INVOCATION_ID
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Failure, Result, Success, TaskReplied

log = logging.getLogger(__name__)

CallKey = tuple[str, int, int]
"""(execution_id, scope_id, wait_id): one attempt of one task."""


class Dispatcher:
    """One coroutine per call under way; so many of them at once as there are `places`."""

    def __init__(
        self,
        committer: Committer,
        invoker: Invoker,
        registry: FunctionRegistry,
        starter: Starter,
        sender: Sender,
        submitter: Submitter,
        places: Places,
        clock: Clock,
        limits: Limits,
        lease: Lease,
        gates: Gates,
        hooks: Hooks,
    ) -> None:
        self._committer = committer
        self._lease = lease
        self._invoker = invoker
        self._registry = registry
        self._starter = starter
        self._sender = sender
        self._submitter = submitter
        self._clock = clock
        self._limits = limits
        self._gates = gates
        self._hooks = hooks
        self.places = places
        self._calls: dict[CallKey, asyncio.Task[None]] = {}
        self._waiting: dict[CallKey, asyncio.Task[None]] = {}
        self._draining = False

    def dispatch(self, caller: Caller, command: InvokeTask) -> None:
        """Make a task's call; a call of the same attempt that is still under way goes on alone."""
        key = (caller.execution_id, command.scope_id, command.wait_id)
        if self._draining or key in self._calls:
            return
        call = asyncio.create_task(self._call(caller, command), name=f"call {command.idempotency_key}")
        self._calls[key] = self._waiting[key] = call
        call.add_done_callback(lambda _: self._forget(key, call))

    def cancel(self, key: CallKey) -> bool:
        """Drop the call, since no step waits for it any more; False if this node is not making it."""
        call = self._calls.get(key)
        if call is None:
            return False
        call.cancel()
        return True

    def _forget(self, key: CallKey, call: asyncio.Task[None]) -> None:
        """The call is over; the same attempt may have been ordered again meanwhile."""
        for calls in (self._calls, self._waiting):
            if calls.get(key) is call:
                del calls[key]

    def abandon(self) -> None:
        """The lease was lost: whatever is under way here is made again by others, and its replies count no more."""
        for call in self._calls.values():
            call.cancel()
        self._calls.clear()
        self._waiting.clear()

    def leave(self) -> None:
        """Begin no more calls; those that wait for a place are left to others."""
        self._draining = True
        for call in list(self._waiting.values()):
            call.cancel()

    def give_up_waiting(self, keeps: Callable[[str], bool], limit: int) -> list[CallKey]:
        """Drop up to `limit` calls that wait for a place, of executions (by id) that this node need not keep."""
        if not (self.places.wanted or self._gates.are_crowded):
            return []
        given_up = list(islice((key for key in self._waiting if not keeps(key[0])), limit))
        for key in given_up:
            self._calls.pop(key)
            self._waiting.pop(key).cancel()
        return given_up

    def has_begun(self, key: CallKey) -> bool:
        """Whether the attempt's call has left this node and its answer is still to come."""
        return key in self._calls and key not in self._waiting

    @property
    def begun(self) -> list[CallKey]:
        """The calls under way here that have a place: as many as there are places."""
        return [key for key in self._calls if key not in self._waiting]

    def is_calling(self, key: CallKey) -> bool:
        """Whether the attempt's call is under way here, or left to whoever comes after this node."""
        return self._draining or key in self._calls

    async def drain(self, seconds: float) -> None:
        """Begin no more calls, wait for those under way, then drop the rest.

        What is not made or dropped is made by whoever takes it over.
        """
        self._draining = True
        calls = list(self._calls.values())
        if not calls:
            return
        _, pending = await asyncio.wait(calls, timeout=seconds)
        for call in pending:
            call.cancel()
        if pending:
            await asyncio.wait(pending)

    async def _call(self, caller: Caller, command: InvokeTask) -> None:
        lease = self._lease.node_id
        result = await self._in_turn(caller, command)
        if result is None:
            return  # whoever comes after this node makes the call
        envelope = Envelope(caller.execution_id, TaskReplied(command.scope_id, command.wait_id, result), lease=lease)
        await persist(lambda: self._committer.submit(envelope))  # a second copy would be stale and do no harm

    async def _in_turn(self, caller: Caller, command: InvokeTask) -> Result | None:
        """Wait for a place: of the function first, if it has a bound, so that nobody else's is held meanwhile."""
        endpoint = None if command.asynchronous else await self._endpoint_of(command.target)
        if not isinstance(endpoint, Endpoint):
            return await self._in_place(caller, command, _callee(command.target))
        try:
            gate = self._gates.enter(endpoint)
        except GateFull as full:
            return Failure("FC.ResourceExhausted", str(full))
        if gate is None:
            return await self._in_place(caller, command, endpoint.registered_as)
        await gate.take()
        try:
            return await self._in_place(caller, command, endpoint.registered_as)
        finally:
            gate.give_back()

    async def _endpoint_of(self, target: Target) -> Lookup | None:
        match target:
            case FunctionTarget(_, service, qualifier, function):
                return await self._endpoint(service, qualifier, function)
            case ActionTarget(_, service, api) if service != "fnf":
                return await self._endpoint(service, "", api)
            case _:
                return None

    async def _in_place(self, caller: Caller, command: InvokeTask, callee: Callee) -> Result | None:
        await self.places.take(caller.flow_name, callee)
        try:
            if self._draining:
                return None
            self._waiting.pop((caller.execution_id, command.scope_id, command.wait_id), None)
            return await self._result(caller, command)
        except Exception as error:  # a call must not end without a word: the step would wait for ever
            log.exception("the call %s failed inside the server", command.idempotency_key)
            return Failure("FnF.RuntimeError", f"the server failed to make the call: {type(error).__name__}")
        finally:
            self.places.give_back(caller.flow_name, callee)

    async def _result(self, caller: Caller, command: InvokeTask) -> Result:
        match command.target:
            case FunctionTarget() as target if command.asynchronous:
                return await self._submitter.submit(caller, command, target)
            case FunctionTarget(_, service, qualifier, function):
                return await self._invoke(caller, command, service, qualifier, function, command.input)
            case FlowTarget(_, flow_name):
                return await persist(lambda: self._start_child(caller, command, flow_name, "FnF"))
            case QueueTarget() | TopicTarget() as target:
                return await self._sender.send(target, command)
            case ActionTarget(_, "fnf", _):
                name = str((command.params or {}).get("FlowName"))
                return await persist(lambda: self._start_child(caller, command, name, "fnf"))
            case ActionTarget(_, service, api):
                return await self._call_action(caller, command, service, api)

    async def _invoke(
        self, caller: Caller, command: InvokeTask, service: str, qualifier: str, function: str, event: JsonObject
    ) -> Result:
        endpoint = await self._endpoint(service, qualifier, function)
        if isinstance(endpoint, Failure):
            return endpoint
        if not self._hooks.is_initialized(endpoint):
            failure = await self._hooks.initialize(endpoint, command.idempotency_key)
            if failure is not None:
                return failure
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
        )
        return _result(await self._invoker.invoke(invocation, endpoint))

    async def _endpoint(self, service: str, qualifier: str, function: str) -> Lookup:
        known = self._registry.remembered(service, qualifier, function)
        if known is not None:
            return known
        return await persist(lambda: self._registry.find(service, qualifier, function))

    async def _call_action(self, caller: Caller, command: InvokeTask, service: str, api: str) -> Result:
        """Another product's API: whoever runs this server registers a function that stands for it."""
        result = await self._invoke(caller, command, service, "", api, command.params or {})
        if isinstance(result, Success) or result.error.startswith(("FC.", "FnF.", f"{service}.")):
            return result
        return Failure(f"{service}.{result.error}", result.cause)

    async def _start_child(self, caller: Caller, command: InvokeTask, flow_name: str, prefix: str) -> Result:
        """Start a sub-flow. Its id follows from the attempt, so ordering the attempt again finds the same child."""
        child_id = child_execution_id(caller.execution_id, command.scope_id, command.wait_id)
        params = command.params or {}
        name = params.get("ExecutionName")
        request = StartRequest(
            flow_name=flow_name,
            execution_id=child_id,
            execution_name=child_id if name is None else str(name),
            input_text=_input_text(params.get("Input"), command.input),
            callback_token=command.token if command.pattern is Pattern.SYNC else None,
        )
        try:
            if name is not None:
                check_execution_name(request.execution_name)
            started = await self._starter.start(request, by_step=True)
        except FlowServerError as error:
            return Failure(*as_failure(error, prefix))
        if command.pattern is Pattern.SYNC and started.execution_id != child_id:
            cause = f"an execution named {request.execution_name} already runs; a sync step needs one of its own"
            return Failure(f"{prefix}.ExecutionAlreadyExists", cause)
        return Success(self._start_reply(request, started))

    def _start_reply(self, request: StartRequest, started: Started) -> JsonObject:
        return {
            "RequestId": request.execution_id,
            "FlowName": started.flow.name,
            "FlowDefinition": started.flow.definition,
            "Name": request.execution_name,
            "Input": request.input_text,
            "Output": "",
            "Status": "Running",
            "StartedTime": format_instant(self._clock.now_ms()),
            "StoppedTime": "",
        }

    def _time_left_ms(self, deadline_at: int | None) -> int:
        if deadline_at is None:
            return self._limits.function_seconds_max * 1000
        return max(deadline_at - self._clock.now_ms(), 1)


def _callee(target: Target) -> Callee:
    """What counts as one and the same, of what is no registered function."""
    return (target.action if isinstance(target, ActionTarget) else target.arn,)


def _result(reply: Replied | Failed) -> Result:
    return Success(reply.output) if isinstance(reply, Replied) else Failure(reply.error, reply.cause)


def _input_text(given: Json, step_input: JsonObject) -> str:
    """The child's input: the parameter (an object, or JSON text of one), else the step's whole input."""
    if given is None:
        return dump_json(step_input)
    return given if isinstance(given, str) else dump_json(given)
