"""The answer to a step that starts a sub-flow, or continues its execution: what StartExecution answers."""

from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject


def reply_to_start(
    execution_id: str, flow_name: str, definition: str, name: str, input_text: str, now_ms: int
) -> JsonObject:
    """The execution that has just been started, as the API shows it."""
    return {
        "RequestId": execution_id,
        "FlowName": flow_name,
        "FlowDefinition": definition,
        "Name": name,
        "Input": input_text,
        "Output": "",
        "Status": "Running",
        "StartedTime": format_instant(now_ms),
        "StoppedTime": "",
    }


def reply_to_redrive(execution_id: str, flow_name: str, name: str) -> JsonObject:
    """The execution of an earlier attempt that has just been redriven."""
    return {"RequestId": execution_id, "FlowName": flow_name, "Name": name, "Status": "Running", "Continued": True}
