"""The calls of task steps, one kind for each kind of target: functions, sub-flows, queues, topics and actions."""

import logging
from functools import partial
from typing import Final, NamedTuple

from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.limited_log import STEP_CALL_FAILED, LimitedLog
from flowserver.base.names import check_execution_name
from flowserver.base.request_ids import call_request_id
from flowserver.engine.commit.batch_items import Envelope, Receipt, ReceiptKind
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.context import EngineContext
from flowserver.engine.executions.attempt_traces import AttemptTraces
from flowserver.engine.executions.invocation_submitter import InvocationSubmitter
from flowserver.engine.executions.message_sender import MessageSender
from flowserver.engine.executions.starting import OwnerGone, Starter, SubFlowTooDeep
from flowserver.engine.executions.sub_flow_starts import new_sub_flow, started_flow
from flowserver.engine.functions.endpoint_lookup import EndpointLookup
from flowserver.invokers.calls import Invocation, Invoker, Replied
from flowserver.invokers.hooks import Hooks
from flowserver.language.graph import ActionTarget, FlowTarget, FunctionTarget, Pattern, QueueTarget, TopicTarget
from flowserver.language.targets import INVOCATION_ID
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.messages import Failure, Redrive, Result, Success
from flowserver.machine.service_params import failure_of_action
from flowserver.machine.sub_flow_reply import reply_to_redrive, reply_to_start
from flowserver.store.executions.lookups import find_paths
from flowserver.store.executions.new_executions import StartingStep
from flowserver.store.executions.redriving import RedriveRequest, Taker

log = logging.getLogger(__name__)


CONTINUE_TRIES: Final = 5
"""How often the redrive of a sub-flow's execution is submitted that changes meanwhile."""


class TaskResult(NamedTuple):
    """What a call has come to, and the request id under which it is in the logs, "" if none was made."""

    result: Result
    request_id: str = ""


class StepCalls:
    """Makes calls. Knows nothing of slots, and of other calls."""

    def __init__(
        self,
        context: EngineContext,
        invoker: Invoker,
        endpoints: EndpointLookup,
        starter: Starter,
        sender: MessageSender,
        submitter: InvocationSubmitter,
        hooks: Hooks,
        traces: AttemptTraces | None = None,
    ) -> None:
        self._clock = context.clock
        self._committer = context.committer
        self._reader = context.reader
        self._limits = context.limits
        self._invoker = invoker
        self._endpoints = endpoints
        self._starter = starter
        self._sender = sender
        self._submitter = submitter
        self._hooks = hooks
        self._traces = traces
        self._failures = LimitedLog(log)

    async def make(self, caller: Caller, command: InvokeTask) -> TaskResult:
        """Make the call, and return its result, which is a Failure if the server itself fails."""
        try:
            outcome = await self._make(caller, command)
        except Exception as error:  # without a result the step would wait for ever
            known = call_request_id(command.idempotency_key, command.attempt)
            fields = log_fields(caller) | {
                "step": command.step_name,
                "call": command.idempotency_key,
                "request_id": known,
            }
            log.exception("the call %(call)s failed inside the server; its request id is %(request_id)s", fields)
            cause = f"the server failed to make the call: {type(error).__name__}"
            return TaskResult(Failure("FnF.RuntimeError", cause), known)
        if outcome.request_id and isinstance(outcome.result, Failure):
            self._log_failure(caller, command, outcome.result, outcome.request_id)
        return outcome

    async def _make(self, caller: Caller, command: InvokeTask) -> TaskResult:
        match command.target:
            case FunctionTarget() as target if command.asynchronous:
                submitted = await self._submitter.submit(caller, command, target, self._traceparent(caller, command))
                return TaskResult(submitted, command.submission_request_id)
            case FunctionTarget(_, service, qualifier, function):
                return await self._invoke(caller, command, service, qualifier, function, command.input)
            case FlowTarget(_, flow_name):
                return TaskResult(
                    await retry_until_available(lambda: self._start_child(caller, command, flow_name, "FnF"))
                )
            case QueueTarget() | TopicTarget() as target:
                return TaskResult(await self._sender.send(target, command, self._traceparent(caller, command)))
            case ActionTarget(_, "fnf", _):
                name = str(started_flow(command))
                return TaskResult(await retry_until_available(lambda: self._start_child(caller, command, name, "fnf")))
            case ActionTarget(_, service, api):
                return await self._call_action(caller, command, service, api)

    async def _invoke(
        self, caller: Caller, command: InvokeTask, service: str, qualifier: str, function: str, event: JsonObject
    ) -> TaskResult:
        endpoint = self._endpoints.cached(service, qualifier, function)
        if endpoint is None:
            endpoint = await retry_until_available(lambda: self._endpoints.find(service, qualifier, function))
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
            traceparent=self._traceparent(caller, command),
        )
        reply = await self._invoker.invoke(invocation, endpoint)
        if isinstance(reply, Replied):
            return TaskResult(Success(reply.output), reply.request_id)
        return TaskResult(Failure(reply.error, reply.cause), reply.request_id or request_id)

    async def _call_action(self, caller: Caller, command: InvokeTask, service: str, api: str) -> TaskResult:
        """Call another product's API: the function that the operator has registered in its place."""
        result, request_id = await self._invoke(caller, command, service, "", api, command.params or {})
        return TaskResult(failure_of_action(result, service) if isinstance(result, Failure) else result, request_id)

    async def _start_child(self, caller: Caller, command: InvokeTask, flow_name: str, prefix: str) -> Result:
        """Start a sub-flow. Its id follows from the attempt, so ordering the attempt again finds the same child."""
        owns, numbers = self._owns(command), self._is_owned(command)
        request = new_sub_flow(caller, command, flow_name, owns=owns, numbers_names=numbers)
        child_id, step = request.execution_id, request.parent
        if self._traces is not None:
            attempt = self._traces.tracer.ref_of(caller.execution_id, command.started_event_id)
            self._traces.note_starter(child_id, attempt)
        if command.continues_child and step is not None:
            result = await self._continue_child(child_id, command, step, prefix)
            if result is not None:
                return result
        try:
            if request.name != child_id:
                check_execution_name(request.name)
            started = await self._starter.start(request, by_step=True)
        except FlowServerError as error:
            return Failure.of(error, prefix)
        except SubFlowTooDeep as error:
            return Failure(f"{prefix}.SubFlowTooDeep", str(error))
        except OwnerGone:
            return Failure("FnF.RuntimeError", "the step no longer waits for its sub-flow")
        if command.pattern is Pattern.SYNC and started.execution_id != child_id:
            cause = f"an execution named {request.name} already runs; a sync step needs one of its own"
            return Failure(f"{prefix}.ExecutionAlreadyExists", cause)
        flow, now_ms = started.flow, self._clock.now_ms()
        known = request.name if started.execution is None else started.execution.name
        if started.execution is None and request.name != child_id and started.execution_id == child_id:
            known = (await self._path_of(child_id)).rpartition("/")[2] or known
        return Success(reply_to_start(child_id, flow.name, flow.definition, known, request.input_text, now_ms))

    async def _continue_child(
        self, child_id: str, command: InvokeTask, step: StartingStep, prefix: str
    ) -> Result | None:
        """Redrive the execution of an earlier attempt, which then reports its end to this one.

        None if it is gone. The wait's token makes it one redrive, however often the call is made.
        """
        assert command.token is not None
        taker = Taker(step, command.token)
        request = RedriveRequest(definition_id="", last_event_id=0, client_token=command.submission_key, taker=taker)
        for _ in range(CONTINUE_TRIES):
            receipt: Receipt = await self._committer.submit(Envelope(child_id, Redrive(), redrive=request))
            match receipt.kind:
                case ReceiptKind.APPLIED | ReceiptKind.REPEATED | ReceiptKind.TAKEN:
                    flow_name, _, name = (await self._path_of(child_id)).rpartition("/")
                    return Success(reply_to_redrive(child_id, flow_name, name))
                case ReceiptKind.UNKNOWN:
                    return None
                case ReceiptKind.STALE:
                    return Failure("FnF.RuntimeError", "the step no longer waits for its sub-flow")
                case ReceiptKind.PARKED:
                    return Failure(f"{prefix}.ExecutionNotRedrivable", "the execution of the sub-flow is parked")
                case ReceiptKind.NOT_NOW:
                    continue
                case _:
                    return Failure(
                        f"{prefix}.ExecutionNotRedrivable", f"the execution of the sub-flow: {receipt.reason}"
                    )
        return Failure(f"{prefix}.ExecutionNotRedrivable", "the execution of the sub-flow keeps changing")

    async def _path_of(self, execution_id: str) -> str:
        found = await self._reader.ask(partial(find_paths, execution_ids=[execution_id]))
        return found.get(execution_id, "")

    def _owns(self, command: InvokeTask) -> bool:
        return self._is_owned(command) and command.token is not None and command.pattern is Pattern.SYNC

    def _is_owned(self, command: InvokeTask) -> bool:
        return (command.child_lifecycle or self._starter.child_lifecycle) == "owned"

    def _traceparent(self, caller: Caller, command: InvokeTask) -> str:
        traces = self._traces
        return "" if traces is None else traces.traceparent(caller.execution_id, command.started_event_id)

    def _log_failure(self, caller: Caller, command: InvokeTask, failure: Failure, request_id: str) -> None:
        """Log a call that failed, without its cause, which the history has and may hold what the function answered."""
        target = command.target.action if isinstance(command.target, ActionTarget) else command.target.arn
        call = {"target": target, "error": failure.error, "request_id": request_id}
        place = {"step": command.step_name, "attempt": command.attempt}
        self._failures.write(logging.INFO, target, STEP_CALL_FAILED, call | log_fields(caller) | place)

    def _time_left_ms(self, deadline_at: int | None) -> int:
        if deadline_at is None:
            return self._limits.function_seconds_max * 1000
        return max(deadline_at - self._clock.now_ms(), 1)


def log_fields(caller: Caller) -> dict[str, object]:
    """The execution in a line of the log."""
    return {"flow": caller.flow_name, "execution": caller.execution_name, "execution_id": caller.execution_id}
