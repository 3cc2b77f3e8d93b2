"""/v1/schedules and below flows: when flows start by themselves."""

from typing import Annotated, Any, Final

from fastapi import Depends, Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.auth import Who
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.schedules import (
    BackfillSchedule,
    CreateSchedule,
    PutSchedule,
    PutScheduleQuery,
    Schedule,
    ScheduleBackfill,
    ScheduleNote,
    SchedulePage,
    ScheduleSummary,
    ScheduleTrigger,
    TriggerSchedule,
    UpdateSchedule,
)
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.parameters import FlowName, ScheduleName, instant_of
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import (
    FlowNotExists,
    InvalidArgument,
    MissingParameter,
    ScheduleAlreadyExists,
    ScheduleNotExists,
    UnsupportedMediaType,
)
from flowserver.operations.operations import Operations
from flowserver.operations.schedule_fields import ScheduleChange

router = rest_router("", "schedules")

_ALL = "/flows/{flow}/schedules"
_ONE = "/flows/{flow}/schedules/{schedule}"

_NOTED: Final[dict[str, Any]] = {
    "response_model": Schedule,
    "responses": problems(FlowNotExists, ScheduleNotExists, UnsupportedMediaType),
    "openapi_extra": json_request(ScheduleNote, required=False),
}
"""What pausing and resuming have in common."""


@router.get("/schedules", summary="List all schedules", response_model=SchedulePage, responses=problems())
async def list_all_schedules(operations: Ops, page: Annotated[PageQuery, Query()], who: Who) -> Response:
    """Schedules of all flows, by flow and name."""
    flows = who.names_within(None) or ""
    found = await operations.schedules.list(None, flows=flows, next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "schedules", ScheduleSummary.of)


@router.get(
    _ALL, summary="List the schedules of a flow", response_model=SchedulePage, responses=problems(FlowNotExists)
)
async def list_schedules(flow: FlowName, operations: Ops, page: Annotated[PageQuery, Query()]) -> Response:
    """Schedules of a flow, by name."""
    found = await operations.schedules.list(flow, next_token=page.next_token, limit=page.limit)
    return await page_answer(operations, found, "schedules", ScheduleSummary.of)


@router.post(
    _ALL,
    summary="Create a schedule",
    response_model=Schedule,
    status_code=201,
    responses=problems(FlowNotExists, MissingParameter, ScheduleAlreadyExists, UnsupportedMediaType),
    openapi_extra=json_request(CreateSchedule),
)
async def create_schedule(
    flow: FlowName, operations: Ops, wanted: Annotated[CreateSchedule, Depends(json_body(CreateSchedule))]
) -> Response:
    """Create a schedule of a flow. An error in the expression names the field and its column."""
    await operations.schedules.create(flow, wanted.name, wanted.change())
    location = {"Location": f"/v1/flows/{flow}/schedules/{wanted.name}"}
    return await _shown(operations, flow, wanted.name, 201, location)


@router.get(
    _ONE,
    summary="Show a schedule",
    response_model=Schedule,
    responses=problems(FlowNotExists, ScheduleNotExists),
)
async def get_schedule(flow: FlowName, schedule: ScheduleName, operations: Ops) -> Response:
    """The schedule with its next ten ticks and its last ten executions."""
    return await _shown(operations, flow, schedule)


@router.put(
    _ONE,
    summary="Create or change a schedule",
    response_model=Schedule,
    responses=problems(FlowNotExists, MissingParameter, UnsupportedMediaType)
    | {201: {"model": Schedule, "description": "The schedule is new."}},
    response_description="The schedule existed and has these fields now.",
    openapi_extra=json_request(PutSchedule),
)
async def put_schedule(
    flow: FlowName,
    schedule: ScheduleName,
    operations: Ops,
    wanted: Annotated[PutSchedule, Depends(json_body(PutSchedule))],
    query: Annotated[PutScheduleQuery, Query()],
) -> Response:
    """Give a schedule these fields, whether it exists or not: for deployments, since it can be repeated.

    The same expression again does not move the next tick, nor the phase of `@every`.
    """
    if query.dry_run:
        checked = await operations.schedules.check(flow, schedule, wanted.change(), strict=query.strict)
        return answer(Schedule.shown(checked))
    _, is_new = await operations.schedules.put(flow, schedule, wanted.change(), strict=query.strict)
    return await _shown(operations, flow, schedule, 201 if is_new else 200)


@router.patch(
    _ONE,
    summary="Change a schedule",
    response_model=Schedule,
    responses=problems(FlowNotExists, ScheduleNotExists, UnsupportedMediaType),
    openapi_extra=json_request(UpdateSchedule),
)
async def update_schedule(
    flow: FlowName,
    schedule: ScheduleName,
    operations: Ops,
    wanted: Annotated[UpdateSchedule, Depends(json_body(UpdateSchedule))],
) -> Response:
    """Change what the body names and leave the rest. Another expression or time zone starts anew from now."""
    change = wanted.change()
    if change == ScheduleChange():
        raise InvalidArgument("there is nothing to change: give at least one field")
    await operations.schedules.update(flow, schedule, change)
    return await _shown(operations, flow, schedule)


@router.delete(_ONE, summary="Delete a schedule", status_code=204, responses=problems(FlowNotExists, ScheduleNotExists))
async def delete_schedule(flow: FlowName, schedule: ScheduleName, operations: Ops) -> Response:
    """Delete a schedule. Its executions go on; what it had buffered is dropped."""
    await operations.schedules.delete(flow, schedule)
    return Response(status_code=204)


@router.post(
    f"{_ONE}/pause",
    summary="Pause a schedule",
    **_NOTED,
)
async def pause_schedule(
    flow: FlowName,
    schedule: ScheduleName,
    operations: Ops,
    wanted: Annotated[ScheduleNote, Depends(json_body(ScheduleNote))],
) -> Response:
    """Start nothing at further ticks, and drop the ticks that are buffered. Triggers and backfills still work."""
    await operations.schedules.pause(flow, schedule, wanted.note)
    return await _shown(operations, flow, schedule)


@router.post(
    f"{_ONE}/resume",
    summary="Resume a schedule",
    **_NOTED,
)
async def resume_schedule(
    flow: FlowName,
    schedule: ScheduleName,
    operations: Ops,
    wanted: Annotated[ScheduleNote, Depends(json_body(ScheduleNote))],
) -> Response:
    """Start at further ticks again. Ticks that passed while it was paused are not run; a backfill runs them."""
    await operations.schedules.resume(flow, schedule, wanted.note)
    return await _shown(operations, flow, schedule)


@router.post(
    f"{_ONE}/trigger",
    summary="Start an execution of a schedule now",
    response_model=ScheduleTrigger,
    status_code=202,
    responses=problems(FlowNotExists, ScheduleNotExists, UnsupportedMediaType),
    openapi_extra=json_request(TriggerSchedule, required=False),
)
async def trigger_schedule(
    flow: FlowName,
    schedule: ScheduleName,
    operations: Ops,
    wanted: Annotated[TriggerSchedule, Depends(json_body(TriggerSchedule))],
) -> Response:
    """Start an execution as if a tick were due now, paused or not, under the overlap policy."""
    _, name = await operations.schedules.trigger(flow, schedule, wanted.overlap)
    return answer(ScheduleTrigger(flow_name=flow, execution_name=name), 202)


@router.post(
    f"{_ONE}/backfill",
    summary="Run past ticks of a schedule",
    response_model=ScheduleBackfill,
    status_code=202,
    responses=problems(FlowNotExists, MissingParameter, ScheduleNotExists, UnsupportedMediaType),
    openapi_extra=json_request(BackfillSchedule),
)
async def backfill_schedule(
    flow: FlowName,
    schedule: ScheduleName,
    operations: Ops,
    wanted: Annotated[BackfillSchedule, Depends(json_body(BackfillSchedule))],
) -> Response:
    """Run the ticks of a range that has passed, one after the other unless `overlap` says otherwise.

    A tick that has an execution already is not run again.
    """
    begin, end = instant_of("startTime", wanted.start_time), instant_of("endTime", wanted.end_time)
    assert begin is not None
    assert end is not None
    count = await operations.schedules.backfill(flow, schedule, begin, end, wanted.overlap)
    return answer(ScheduleBackfill(ticks=count), 202)


async def _shown(
    operations: Operations, flow: str, schedule: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """The schedule as it is now."""
    return answer(Schedule.shown(await operations.schedules.show(flow, schedule)), status, headers)
