"""Reply bodies in the API's spelling (UpperCamelCase, RFC 3339 times, documents as JSON text)."""

import contextlib

from flowserver.base.clock import format_instant
from flowserver.base.json_values import InvalidJson, Json, JsonObject, load_json, load_json_object
from flowserver.machine.events import Event
from flowserver.machine.schedules.state import Schedule
from flowserver.machine.state import Status
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.flows import FlowRow


def flow_view(flow: FlowRow) -> JsonObject:
    """A flow as CreateFlow, UpdateFlow, DescribeFlow and ListFlows show it."""
    view: JsonObject = {
        "Id": flow.flow_id,
        "Name": flow.name,
        "Description": flow.description,
        "Definition": flow.definition,
        "Type": flow.type,
        "RoleArn": flow.role_arn,
        "ResourceGroupId": flow.resource_group_id,
        "ExecutionMode": flow.execution_mode,
        "ExternalStorageLocation": flow.external_storage_location,
        "CreatedTime": format_instant(flow.created_at),
        "LastModifiedTime": format_instant(flow.modified_at),
    }
    if flow.environment:
        with contextlib.suppress(InvalidJson):  # a damaged row; the others of a list must be shown all the same
            view["Environment"] = load_json(flow.environment)
    return view


def schedule_view(schedule: Schedule) -> JsonObject:
    """A schedule as its actions show it."""
    return {
        "ScheduleId": schedule.schedule_id,
        "ScheduleName": schedule.name,
        "Description": schedule.description,
        "CronExpression": schedule.expression,
        "Payload": schedule.payload,
        "Enable": schedule.is_enabled,
        "CreatedTime": format_instant(schedule.created_at),
        "LastModifiedTime": format_instant(schedule.modified_at),
    }


def execution_view(row: ExecutionRow, *, metadata_only: bool = False) -> JsonObject:
    """An execution as StartExecution, StopExecution, DescribeExecution and ListExecutions show it."""
    return {
        "Name": row.name,
        "FlowName": row.flow_name,
        "FlowDefinition": "" if metadata_only else row.definition,
        "Input": "" if metadata_only else row.input,
        "Output": "" if metadata_only else row.output or "",
        "Status": str(row.status),
        "StartedTime": format_instant(row.started_at),
        "StoppedTime": _instant(row.stopped_at),
    }


def with_environment(view: JsonObject, row: ExecutionRow) -> JsonObject:
    """The view of an execution with the variables of its flow, names and values, if the flow has any."""
    if not row.environment:
        return view
    try:
        variables = load_json_object(row.environment).get("Variables")
    except InvalidJson:  # a damaged row; the rest of it must be shown all the same
        return view
    listed = variables if isinstance(variables, list) else []
    shown: list[Json] = [
        {"Name": each.get("Name"), "Value": each.get("Value")} for each in listed if isinstance(each, dict)
    ]
    return {**view, "Environment": {"Variables": shown}}


def sync_execution_view(row: ExecutionRow) -> JsonObject:
    """An execution as StartSyncExecution shows it; a failure of the flow is no failure of the request."""
    timed_out = row.status is Status.TIMED_OUT
    return {
        "Name": row.name,
        "FlowName": row.flow_name,
        "Status": str(row.status),
        "ErrorCode": row.error or "",
        "ErrorMessage": row.cause or ("the execution timed out" if timed_out else ""),
        "Output": row.output or "",
        "StartedTime": format_instant(row.started_at),
        "StoppedTime": _instant(row.stopped_at),
    }


def event_view(event: Event) -> JsonObject:
    """A history event; EventDetail is a text."""
    return {
        "EventId": event.event_id,
        "ScheduleEventId": event.schedule_event_id,
        "StepName": event.step_name,
        "Type": str(event.type),
        "Time": format_instant(event.time_ms),
        "EventDetail": event.detail,
    }


def _instant(instant_ms: int | None) -> str:
    return "" if instant_ms is None else format_instant(instant_ms)
