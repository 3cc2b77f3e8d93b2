"""The actions: the parameters that each reads, the operation that it calls, and its answer."""

from collections.abc import Awaitable, Callable

from flowserver.api.rpc.parameters import Parameters
from flowserver.api.rpc.reply_bodies import (
    event_view,
    execution_view,
    flow_view,
    schedule_view,
    sync_execution_view,
    with_environment,
)
from flowserver.api.rpc.versions import (
    create_flow_alias,
    delete_flow_alias,
    delete_flow_version,
    describe_flow_alias,
    list_flow_aliases,
    list_flow_versions,
    publish_flow_version,
    update_flow_alias,
)
from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import InvalidJson, Json, JsonObject, load_json_object
from flowserver.machine.state import Status
from flowserver.machine.versions.routing import is_qualifier
from flowserver.operations.flows import FlowChange
from flowserver.operations.operations import Operations
from flowserver.operations.schedule_fields import ScheduleChange
from flowserver.store.executions.listing_of_flow import ExecutionFilter

Action = Callable[[Operations, Parameters], Awaitable[JsonObject]]

STATUSES = ("Starting", *map(str, Status))


async def create_flow(operations: Operations, given: Parameters) -> JsonObject:
    """CreateFlow."""
    flow, *_ = await operations.flows.create(
        given.required("Name"),
        given.required("Definition"),
        description=given.text("Description") or "",
        type=given.required("Type"),
        role_arn=given.text("RoleArn") or "",
        execution_mode=given.text("ExecutionMode") or "",
        external_storage_location=given.text("ExternalStorageLocation") or "",
        environment=_environment(given) or "",
        resource_group_id=given.text("ResourceGroupId") or "",
    )
    return flow_view(flow)


async def update_flow(operations: Operations, given: Parameters) -> JsonObject:
    """UpdateFlow: what is absent stays as it is; what is empty is cleared, except the definition and its type."""
    change = FlowChange(
        definition=given.text("Definition"),
        description=given.given("Description"),
        type=given.text("Type"),
        role_arn=given.given("RoleArn"),
        external_storage_location=given.given("ExternalStorageLocation"),
        environment=_environment(given),
    )
    return flow_view((await operations.flows.update(given.required("Name"), change)).flow)


async def delete_flow(operations: Operations, given: Parameters) -> JsonObject:
    """DeleteFlow."""
    await operations.flows.delete(given.required("Name"))
    return {}


async def describe_flow(operations: Operations, given: Parameters) -> JsonObject:
    """DescribeFlow, as it is or with the definition of a version."""
    name, version = given.required("Name"), given.text("FlowVersion")
    if version is not None:
        return flow_view(await operations.versions.describe_flow(name, version))
    return flow_view(await operations.flows.describe(name))


async def list_flows(operations: Operations, given: Parameters) -> JsonObject:
    """ListFlows."""
    page = await operations.flows.list(
        next_token=given.text("NextToken"),
        limit=given.integer("Limit"),
        resource_group_id=given.text("ResourceGroupId"),
        name_prefix=given.caller.names_within(None),
    )
    return _with_token({"Flows": [flow_view(flow) for flow in page.items]}, page.next_token)


async def start_execution(operations: Operations, given: Parameters) -> JsonObject:
    """StartExecution."""
    callback_token = given.text("CallbackFnFTaskToken")
    if callback_token is not None:
        await operations.tasks.check_reporter(callback_token, given.caller)
    row = await operations.executions.start(
        given.required("FlowName"),
        name=given.text("ExecutionName"),
        input_text=given.document("Input"),
        callback_token=callback_token,
        qualifier=given.text("Qualifier"),
    )
    return execution_view(row)


async def start_sync_execution(operations: Operations, given: Parameters) -> JsonObject:
    """StartSyncExecution."""
    row = await operations.executions.start_sync(
        given.required("FlowName"),
        name=given.text("ExecutionName"),
        input_text=given.document("Input"),
        qualifier=given.text("Qualifier"),
    )
    return with_environment(sync_execution_view(row), row)


async def stop_execution(operations: Operations, given: Parameters) -> JsonObject:
    """StopExecution."""
    row = await operations.executions.stop(
        given.required("FlowName"),
        given.required("ExecutionName"),
        error=given.text("Error"),
        cause=given.text("Cause"),
    )
    return {**execution_view(row), "RoleArn": row.role_arn}


async def describe_execution(operations: Operations, given: Parameters) -> JsonObject:
    """DescribeExecution, at once or after a long poll."""
    row = await operations.executions.describe(
        given.required("FlowName"),
        given.required("ExecutionName"),
        wait_seconds=given.integer("WaitTimeSeconds") or 0,
    )
    return with_environment(execution_view(row), row)


async def list_executions(operations: Operations, given: Parameters) -> JsonObject:
    """ListExecutions."""
    flow_name = given.required("FlowName")
    status = given.text("Status")
    if status is not None and status not in STATUSES:
        raise InvalidArgument(f"Status must be one of {', '.join(STATUSES)}")
    qualifier = given.text("Qualifier")
    if qualifier is not None and not is_qualifier(qualifier):
        raise InvalidArgument("Qualifier must be the name of an alias, the number of a version, or LATEST")
    wanted = ExecutionFilter(
        status=None if status is None or status == STATUSES[0] else Status(status),
        started_from=given.instant("StartedTimeBegin"),
        started_to=given.instant("StartedTimeEnd"),
        name_prefix=given.text("ExecutionNamePrefix"),
        qualifier=qualifier,
    )
    limit, metadata_only = given.integer("Limit"), given.boolean("MetadataOnly")
    page = await operations.executions.list(
        flow_name, wanted, next_token=given.text("NextToken"), limit=limit, documents=not metadata_only
    )
    if status == STATUSES[0]:  # executions here run from the moment they exist
        return {"Executions": []}
    views = [with_environment(execution_view(row, metadata_only=metadata_only), row) for row in page.items]
    return _with_token({"Executions": views}, page.next_token)


async def get_execution_history(operations: Operations, given: Parameters) -> JsonObject:
    """GetExecutionHistory."""
    page = await operations.executions.history(
        given.required("FlowName"),
        given.required("ExecutionName"),
        next_token=given.text("NextToken"),
        limit=given.integer("Limit"),
    )
    return _with_token({"Events": [event_view(event) for event in page.items]}, page.next_token)


async def report_task_succeeded(operations: Operations, given: Parameters) -> JsonObject:
    """ReportTaskSucceeded."""
    token, output = given.required("TaskToken"), given.required("Output")
    caller, request_id = given.caller, given.request_id
    return {"EventId": await operations.tasks.report_succeeded(token, output, request_id=request_id, caller=caller)}


async def report_task_failed(operations: Operations, given: Parameters) -> JsonObject:
    """ReportTaskFailed."""
    token, error = given.required("TaskToken"), given.required("Error")
    cause, request_id, caller = given.text("Cause"), given.request_id, given.caller
    event_id = await operations.tasks.report_failed(token, error, cause, request_id=request_id, caller=caller)
    return {"EventId": event_id}


async def create_schedule(operations: Operations, given: Parameters) -> JsonObject:
    """CreateSchedule. The API knows neither overlap nor catch-up: schedules have the defaults, AllowAll and 60 s."""
    flow_name, name = given.required("FlowName"), given.required("ScheduleName")
    fields = ScheduleChange(
        expression=given.required("CronExpression"),
        description=given.text("Description"),
        payload=given.document("Payload") or None,
        is_enabled=_enable(given),
    )
    return schedule_view(await operations.schedules.create(flow_name, name, fields))


async def update_schedule(operations: Operations, given: Parameters) -> JsonObject:
    """UpdateSchedule: what is absent stays as it is; an empty description or payload is cleared."""
    change = ScheduleChange(
        expression=given.text("CronExpression"),
        description=given.given("Description"),
        payload=given.given_document("Payload"),
        is_enabled=_enable(given),
    )
    flow_name, name = given.required("FlowName"), given.required("ScheduleName")
    return schedule_view(await operations.schedules.update(flow_name, name, change))


async def delete_schedule(operations: Operations, given: Parameters) -> JsonObject:
    """DeleteSchedule."""
    await operations.schedules.delete(given.required("FlowName"), given.required("ScheduleName"))
    return {}


async def describe_schedule(operations: Operations, given: Parameters) -> JsonObject:
    """DescribeSchedule."""
    return schedule_view(
        await operations.schedules.describe(given.required("FlowName"), given.required("ScheduleName"))
    )


async def list_schedules(operations: Operations, given: Parameters) -> JsonObject:
    """ListSchedules."""
    page = await operations.schedules.list(
        given.required("FlowName"), next_token=given.text("NextToken"), limit=given.integer("Limit")
    )
    return _with_token({"Schedules": [schedule_view(each) for each in page.items]}, page.next_token)


async def describe_regions(operations: Operations, _given: Parameters) -> JsonObject:
    """DescribeRegions: this server alone."""
    place = operations.place
    region: JsonObject = {"RegionId": place.region, "RegionEndpoint": place.endpoint, "LocalName": place.region}
    return {"Regions": {"Region": [region]}}


ACTIONS: dict[str, Action] = {
    "CreateFlow": create_flow,
    "UpdateFlow": update_flow,
    "DeleteFlow": delete_flow,
    "DescribeFlow": describe_flow,
    "ListFlows": list_flows,
    "StartExecution": start_execution,
    "StartSyncExecution": start_sync_execution,
    "StopExecution": stop_execution,
    "DescribeExecution": describe_execution,
    "ListExecutions": list_executions,
    "GetExecutionHistory": get_execution_history,
    "ReportTaskSucceeded": report_task_succeeded,
    "ReportTaskFailed": report_task_failed,
    "CreateSchedule": create_schedule,
    "UpdateSchedule": update_schedule,
    "DeleteSchedule": delete_schedule,
    "DescribeSchedule": describe_schedule,
    "ListSchedules": list_schedules,
    "PublishFlowVersion": publish_flow_version,
    "ListFlowVersions": list_flow_versions,
    "DeleteFlowVersion": delete_flow_version,
    "CreateFlowAlias": create_flow_alias,
    "UpdateFlowAlias": update_flow_alias,
    "DescribeFlowAlias": describe_flow_alias,
    "ListFlowAliases": list_flow_aliases,
    "DeleteFlowAlias": delete_flow_alias,
    "DescribeRegions": describe_regions,
}


NOT_CARRIED_OUT = {
    action: f"the action {action} is not supported: there are no map runs here; "
    "a foreach step runs its iterations in its own execution"
    for action in ("DescribeMapRun", "UpdateMapRun")
}
"""Actions of newer releases that are refused, and why."""

LISTS = (
    *("ListFlows", "ListExecutions", "GetExecutionHistory", "ListSchedules"),
    *("ListFlowVersions", "ListFlowAliases"),
)
"""Those whose answers may be large."""


def _with_token(body: JsonObject, next_token: str | None) -> JsonObject:
    """Clients page on until the token is absent."""
    return body if next_token is None else {**body, "NextToken": next_token}


def _enable(given: Parameters) -> bool | None:
    return None if given.text("Enable") is None else given.boolean("Enable")


def _environment(given: Parameters) -> str | None:
    """The JSON text of an environment, "" for none; None if the parameter is absent."""
    text = given.given_document("Environment")
    if not text:
        return text
    try:
        variables = load_json_object(text).get("Variables", [])
    except InvalidJson as error:
        raise InvalidArgument(f"Environment must be the JSON text of an object: {error}") from None
    if not isinstance(variables, list) or not all(map(_is_variable, variables)):
        raise InvalidArgument("Environment.Variables must be a list of objects with Name and Value, which are texts")
    return text


def _is_variable(variable: Json) -> bool:
    if not isinstance(variable, dict) or not variable.get("Name"):
        return False
    optional = variable.get("Description")
    return all(isinstance(text, str) for text in (variable["Name"], variable.get("Value"), optional or ""))
