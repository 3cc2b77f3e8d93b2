"""Schedules."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from flowserver.api.rest.models.definition_checks import MissingTarget
from flowserver.api.rest.models.schedule_runs import (
    RUN_EXAMPLE,
    ScheduleRefusal,
    ScheduleRun,
    ScheduleWait,
    queue_of,
)
from flowserver.api.rest.models.shared_types import (
    Instant,
    Name,
    NextToken,
    QueryParameters,
    RequestBody,
    Resource,
    with_examples,
)
from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject, dump_json, load_json_object
from flowserver.machine.schedules import state
from flowserver.machine.schedules.state import Overlap
from flowserver.machine.schedules.timing import EXPRESSION_CHARACTERS_MAX
from flowserver.operations.schedule_fields import (
    ACTIONS_MAX,
    CATCH_UP_SECONDS_MAX,
    CATCH_UP_SECONDS_MIN,
    DESCRIPTION_CHARACTERS_MAX,
    NOTE_CHARACTERS_MAX,
    ZONE_CHARACTERS_MAX,
    Limited,
    ScheduleChange,
)
from flowserver.operations.schedule_warnings import ScheduleWarning
from flowserver.operations.schedules import ShownSchedule

Expression = Annotated[
    str,
    Field(
        max_length=EXPRESSION_CHARACTERS_MAX,
        description="Six fields: seconds, minutes, hours, day of month, month, day of week (1 or MON is Monday); "
        "or `@every <n>m`.",
    ),
]
TimeZone = Annotated[
    str,
    Field(max_length=ZONE_CHARACTERS_MAX, description="IANA name of the zone that the expression is evaluated in."),
]
Description = Annotated[str, Field(max_length=DESCRIPTION_CHARACTERS_MAX)]
Note = Annotated[str, Field(max_length=NOTE_CHARACTERS_MAX, description="Why it is paused, or was resumed.")]
CatchUp = Annotated[
    int,
    Field(
        ge=CATCH_UP_SECONDS_MIN,
        le=CATCH_UP_SECONDS_MAX,
        description="How late a tick may start, such as after the server was down. Older ticks count as missed.",
    ),
]
OverlapPolicy = Annotated[Overlap, Field(description="What a tick does while an execution of the schedule runs.")]


def _overlap(given: Any) -> Overlap | None:
    if given is None or given in tuple(Overlap):
        return None if given is None else Overlap(given)
    raise PydanticCustomError("overlap", "must be one of {names}", {"names": ", ".join(Overlap)})


GivenOverlap = Annotated[
    Overlap | None,
    BeforeValidator(_overlap),
    Field(description="What a tick does while an execution of the schedule runs."),
]
RemainingActions = Annotated[
    int | None,
    Field(ge=0, le=ACTIONS_MAX, description="Ticks that may still start an execution; null for any number."),
]
Qualifier = Annotated[
    str,
    Field(
        max_length=128,
        description="The version or alias of the flow that executions run; empty for the current definition.",
    ),
]
Payload = Annotated[JsonObject, Field(description="`$input.payload` of the executions.")]

_FIELDS = {
    "cronExpression": "0 30 2 * * ?",
    "timeZone": "Europe/Berlin",
    "description": "The nightly import.",
    "payload": {"source": "shop"},
    "qualifier": "",
    "enabled": True,
    "note": "",
    "overlap": "Skip",
    "catchUpSeconds": 3600,
    "pauseOnFailure": False,
    "remainingActions": None,
}
_SUMMARY = {
    "id": "0b2d8f0e-6f0f-4d3a-8f2c-0f2f9a6d1c77",
    "flowName": "etl",
    "name": "nightly",
    **_FIELDS,
    "nextTime": "2026-01-03T01:30:00.000Z",
    "started": 12,
    "missed": 1,
    "skipped": 0,
    "lastMissed": {"time": "2026-01-01T01:30:00.000Z", "reason": "late"},
    "lastSkipped": None,
    "waiting": 0,
    "createdTime": "2026-01-02T03:04:05.678Z",
    "lastModifiedTime": "2026-01-02T03:04:05.678Z",
}
_WARNING = {
    "id": "unknown-qualifier",
    "severity": "warning",
    "message": "flow etl has no alias prod yet: starts are refused",
    "target": {"kind": "alias", "name": "etl/prod"},
}


class ScheduleLoss(Resource):
    """A scheduled run that started nothing."""

    model_config = with_examples({"time": "2026-01-01T01:30:00.000Z", "reason": "late"})

    time: Annotated[Instant, Field(description="When it was to start.")]
    reason: Annotated[
        state.LossReason,
        Field(
            description="`late`: older than `catchUpSeconds`; `refused`: given up after refusals; `overlap`: the "
            "overlap policy dropped it; `done`: it had an execution; `paused`: it waited when the schedule was paused."
        ),
    ]

    @classmethod
    def of(cls, loss: state.Loss | None) -> Self | None:
        """The run, if there is one."""
        return None if loss is None else cls(time=format_instant(loss.at), reason=loss.reason)


class ScheduleSummary(Resource):
    """A schedule as listings show it."""

    model_config = with_examples(_SUMMARY)

    id: str
    flow_name: Name
    name: Name
    cron_expression: Expression
    time_zone: TimeZone
    description: Description
    payload: Payload
    qualifier: Qualifier
    enabled: Annotated[bool, Field(description="False while it is paused.")]
    note: Note
    overlap: OverlapPolicy
    catch_up_seconds: CatchUp
    pause_on_failure: Annotated[bool, Field(description="Pause when an execution fails or times out.")]
    remaining_actions: RemainingActions
    next_time: Annotated[Instant | None, Field(description="The next tick; null if there is none.")]
    started: Annotated[int, Field(description="Executions that it has started.")]
    missed: Annotated[int, Field(description="Ticks that were older than `catchUpSeconds`, and starts given up.")]
    skipped: Annotated[int, Field(description="Ticks that the overlap policy dropped, or that had run before.")]
    last_missed: Annotated[ScheduleLoss | None, Field(description="The last missed run; null if there is none.")]
    last_skipped: Annotated[ScheduleLoss | None, Field(description="The last skipped run; null if there is none.")]
    waiting: Annotated[int, Field(description="Starts and backfills that wait.")]
    created_time: Instant
    last_modified_time: Instant

    @classmethod
    def of(cls, schedule: state.Schedule) -> Self:
        """The summary of a schedule."""
        return cls(**_summary(schedule))


class ScheduleFinding(Resource):
    """What is doubtful about a schedule."""

    model_config = with_examples(_WARNING)

    id: Annotated[str, Field(description="`unknown-qualifier`, `unreadable-timing`; in a dry run also `unknown-flow`.")]
    severity: Annotated[str, Field(description="`warning`.")]
    message: str
    target: Annotated[MissingTarget | None, Field(description="What does not exist yet; null for `unreadable-timing`.")]

    @classmethod
    def of(cls, found: ScheduleWarning) -> Self:
        """The warning as the API shows it."""
        return cls(id=found.id, severity="warning", message=found.message, target=MissingTarget.of(found.target))


class Schedule(ScheduleSummary):
    """A schedule with its next and its last ten times."""

    model_config = with_examples(
        {
            **_SUMMARY,
            "nextTimes": [_SUMMARY["nextTime"]],
            "queue": [],
            "recent": [RUN_EXAMPLE],
            "lastRefusal": None,
            "warnings": [],
        }
    )

    next_times: Annotated[list[Instant], Field(description="The next ten ticks.")]
    queue: Annotated[
        list[ScheduleWait],
        Field(description="The first ten of those that are `waiting`, in the order in which they are decided on."),
    ]
    recent: Annotated[list[ScheduleRun], Field(description="The last ten executions, newest first.")]
    last_refusal: Annotated[ScheduleRefusal | None, Field(description="null if the last start succeeded.")]
    warnings: Annotated[
        list[ScheduleFinding],
        Field(
            description="What is doubtful: that the qualifier does not exist, so that its starts are refused; or that "
            "the server cannot read the expression or the time zone any more, so that it starts nothing."
        ),
    ]

    @classmethod
    def shown(cls, shown: ShownSchedule) -> Self:
        """The schedule with what was found of its executions."""
        memory = shown.schedule.memory
        refusal = memory.refusal
        return cls(
            **_summary(shown.schedule),
            next_times=[format_instant(at) for at in shown.next_instants],
            queue=queue_of(memory),
            recent=[ScheduleRun.of(each, shown.statuses.get(each.execution_id)) for each in reversed(memory.recent)],
            last_refusal=None if refusal is None else ScheduleRefusal.of(refusal),
            warnings=[ScheduleFinding.of(each) for each in shown.warnings],
        )


def _summary(schedule: state.Schedule) -> dict[str, Any]:
    memory = schedule.memory
    return {
        "id": schedule.schedule_id,
        "flow_name": schedule.flow_name,
        "name": schedule.name,
        "cron_expression": schedule.expression,
        "time_zone": schedule.time_zone,
        "description": schedule.description,
        "payload": load_json_object(schedule.payload) if schedule.payload else {},
        "qualifier": schedule.qualifier,
        "enabled": schedule.is_enabled,
        "note": schedule.note,
        "overlap": schedule.overlap,
        "catch_up_seconds": schedule.catch_up_seconds,
        "pause_on_failure": schedule.pauses_on_failure,
        "remaining_actions": schedule.actions_left,
        "next_time": None if schedule.next_at is None else format_instant(schedule.next_at),
        "started": memory.started,
        "missed": memory.missed,
        "skipped": memory.skipped,
        "last_missed": ScheduleLoss.of(memory.last_missed),
        "last_skipped": ScheduleLoss.of(memory.last_skipped),
        "waiting": len(memory.triggers) + len(memory.buffered) + len(memory.backfills),
        "created_time": format_instant(schedule.created_at),
        "last_modified_time": format_instant(schedule.modified_at),
    }


class SchedulePage(Resource):
    """Schedules, ordered by flow and name."""

    model_config = with_examples({"schedules": [_SUMMARY], "nextToken": "etl/weekly"})

    schedules: list[ScheduleSummary]
    next_token: NextToken


class UpdateSchedule(RequestBody):
    """What to change of a schedule; what is absent stays as it is, and so does what is null but `remainingActions`."""

    model_config = with_examples({"cronExpression": "0 30 3 * * ?", "catchUpSeconds": 7200})

    cron_expression: Expression | None = None
    time_zone: TimeZone | None = None
    description: Description | None = None
    payload: Payload | None = None
    qualifier: Qualifier | None = None
    enabled: bool | None = None
    note: Note | None = None
    overlap: GivenOverlap = None
    catch_up_seconds: CatchUp | None = None
    pause_on_failure: bool | None = None
    remaining_actions: RemainingActions = None

    def change(self) -> ScheduleChange:
        """The change of the operations."""
        return ScheduleChange(
            expression=self.cron_expression,
            time_zone=self.time_zone,
            description=self.description,
            payload=None if self.payload is None else dump_json(self.payload),
            is_enabled=self.enabled,
            qualifier=self.qualifier,
            note=self.note,
            overlap=self.overlap,
            catch_up_seconds=self.catch_up_seconds,
            pauses_on_failure=self.pause_on_failure,
            limited=Limited(self.remaining_actions) if "remaining_actions" in self.model_fields_set else None,
        )


class PutSchedule(UpdateSchedule):
    """What a schedule shall be; what is absent has its default in a new schedule, and stays as it is in another."""

    model_config = with_examples({**_FIELDS})

    cron_expression: Expression


class PutScheduleQuery(QueryParameters):
    """How to check a schedule, and whether to keep it."""

    dry_run: Annotated[
        bool,
        Field(
            description="Change nothing. The reply shows what the schedule would be; that its flow does not exist yet "
            "is a warning."
        ),
    ] = False
    strict: Annotated[bool, Field(description="Whether a qualifier that does not exist is refused.")] = False


class CreateSchedule(PutSchedule):
    """A new schedule."""

    model_config = with_examples({"name": "nightly", **_FIELDS})

    name: Name


class ScheduleNote(RequestBody):
    """Why a schedule is paused or resumed."""

    model_config = with_examples({"note": "the shop is being moved"})

    note: Note = ""


class TriggerSchedule(RequestBody):
    """Whether the execution may run beside others: the schedule's own policy if absent."""

    model_config = with_examples({"overlap": "AllowAll"})

    overlap: GivenOverlap = None


class ScheduleTrigger(Resource):
    """The execution that starts, unless the overlap policy skips it."""

    model_config = with_examples({"flowName": "etl", "executionName": "nightly-20260102T031415926Z"})

    flow_name: Name
    execution_name: str


class BackfillSchedule(RequestBody):
    """A range of ticks, both ends included, that are run as if they were due now."""

    model_config = with_examples(
        {"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-02T00:00:00Z", "overlap": "BufferAll"}
    )

    start_time: Instant
    end_time: Instant
    overlap: GivenOverlap = None


class ScheduleBackfill(Resource):
    """How many ticks a backfill has."""

    model_config = with_examples({"ticks": 24})

    ticks: int
