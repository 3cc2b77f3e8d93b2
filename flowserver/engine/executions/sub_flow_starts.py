"""What a step's call starts: the new execution of its sub-flow, as the call and the plan of a redrive make it."""

from flowserver.base.derived_ids import child_execution_id
from flowserver.language.graph import ActionTarget, FlowTarget, Pattern
from flowserver.language.targets import EXECUTION_NAME, FLOW_NAME, QUALIFIER
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.service_params import child_input
from flowserver.store.executions.new_executions import NewExecution, StartingStep


def started_flow(command: InvokeTask) -> str | None:
    """The name of the flow that the call starts; None if it starts none."""
    match command.target:
        case FlowTarget(_, flow_name):
            return flow_name
        case ActionTarget(_, "fnf", _):
            return str((command.params or {}).get(FLOW_NAME))
    return None


def new_sub_flow(
    caller: Caller, command: InvokeTask, flow_name: str, *, owns: bool, numbers_names: bool
) -> NewExecution:
    """The execution to start. Its id follows from the attempt, so that the same attempt always starts the same one."""
    params = command.params or {}
    name, qualifier = params.get(EXECUTION_NAME), params.get(QUALIFIER)
    child_id = child_execution_id(caller.execution_id, command.scope_id, command.child_wait or command.wait_id)
    return NewExecution(
        flow_name=flow_name,
        execution_id=child_id,
        name=child_id if name is None else str(name),
        input_text=child_input(params, command.input),
        callback_token=command.token if command.pattern is Pattern.SYNC else None,
        qualifier=None if qualifier is None else str(qualifier),
        parent=StartingStep(
            caller.execution_id,
            command.scope_id,
            command.wait_id,
            owns,
            numbers_names=numbers_names,
            is_retry=command.is_retry,
            has_new_token=command.pattern is Pattern.WAIT_FOR_CALLBACK,
        ),
    )
