"""The calls of task steps, one kind for each kind of target: functions, sub-flows, queues, topics and actions."""

import logging
from typing import NamedTuple

from flowserver.base.derived_ids import child_execution_id
from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.limited_log import STEP_CALL_FAILED, LimitedLog
from flowserver.base.names import check_execution_name
from flowserver.base.request_ids import call_request_id
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.context import EngineContext
from flowserver.engine.executions.attempt_traces import AttemptTraces
from flowserver.engine.executions.invocation_submitter import InvocationSubmitter
from flowserver.engine.executions.message_sender import MessageSender
from flowserver.engine.executions.starting import OwnerGone, Starter, SubFlowTooDeep
from flowserver.engine.functions.endpoint_lookup import EndpointLookup
from flowserver.invokers.calls import Invocation, Invoker, Replied
from flowserver.invokers.hooks import Hooks
from flowserver.language.graph import ActionTarget, FlowTarget, FunctionTarget, Pattern, QueueTarget, TopicTarget
from flowserver.language.targets import EXECUTION_NAME, FLOW_NAME, INVOCATION_ID, QUALIFIER
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.messages import Failure, Result, Success
from flowserver.machine.service_params import child_input, failure_of_action
from flowserver.machine.sub_flow_reply import reply_to_start
from flowserver.store.executions.new_executions import NewExecution, StartingStep

log = logging.getLogger(__name__)


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
                name = str((command.params or {}).get(FLOW_NAME))
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
            parent=StartingStep(caller.execution_id, command.scope_id, command.wait_id, self._owns(command)),
        )
        if self._traces is not None:
            attempt = self._traces.tracer.ref_of(caller.execution_id, command.started_event_id)
            self._traces.note_starter(child_id, attempt)
        try:
            if name is not None:
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
        return Success(reply_to_start(child_id, flow.name, flow.definition, request.name, request.input_text, now_ms))

    def _owns(self, command: InvokeTask) -> bool:
        is_owned = (command.child_lifecycle or self._starter.child_lifecycle) == "owned"
        return is_owned and command.token is not None and command.pattern is Pattern.SYNC

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
