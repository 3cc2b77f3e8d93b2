"""What a schedule has started, what waits, and what was refused."""

from typing import Annotated, Final, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Instant, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.machine.schedules.state import Kind, Memory, Refusal, Run
from flowserver.machine.state import Status

QUEUE_SHOWN: Final = 10
"""Starts and backfills that wait, as one schedule shows them."""

RUN_EXAMPLE = {
    "time": "2026-01-02T01:30:00.000Z",
    "kind": "tick",
    "executionName": "nightly-20260102T013000Z",
    "startedTime": "2026-01-02T01:30:00.012Z",
    "status": "Succeeded",
}
_WAIT = {"time": "2026-01-03T01:30:00.000Z", "kind": "tick", "until": None}
_REFUSAL = {
    "time": "2026-01-02T01:30:00.000Z",
    "refusedTime": "2026-01-02T01:30:00.012Z",
    "code": "ResourceThrottled",
    "message": "100000 executions are running; try again later",
}


class ScheduleRun(Resource):
    """An execution that a schedule started."""

    model_config = with_examples(RUN_EXAMPLE)

    time: Annotated[Instant, Field(description="The tick, or when it was triggered.")]
    kind: Annotated[str, Field(description="`tick`, `trigger` or `backfill`.")]
    execution_name: str
    started_time: Instant
    status: Annotated[Status | None, Field(description="null if the execution does not exist any more.")]

    @classmethod
    def of(cls, run: Run, status: Status | None) -> Self:
        """The execution and its status."""
        return cls(
            time=format_instant(run.at),
            kind=str(run.kind),
            execution_name=run.name,
            started_time=format_instant(run.started_at),
            status=status,
        )


class ScheduleWait(Resource):
    """A start that waits, or the ticks of a backfill."""

    model_config = with_examples(_WAIT)

    time: Annotated[Instant, Field(description="The tick, or when it was triggered; of a backfill its next tick.")]
    kind: Annotated[str, Field(description="`tick`, `trigger` or `backfill`.")]
    until: Annotated[Instant | None, Field(description="The end of a range that a backfill still runs; else null.")]


class ScheduleRefusal(Resource):
    """A start that was refused, and is tried again."""

    model_config = with_examples(_REFUSAL)

    time: Instant
    refused_time: Instant
    code: str
    message: str

    @classmethod
    def of(cls, refusal: Refusal) -> Self:
        """The refused start."""
        return cls(
            time=format_instant(refusal.at),
            refused_time=format_instant(refusal.refused_at),
            code=refusal.code,
            message=refusal.message,
        )


def queue_of(memory: Memory) -> list[ScheduleWait]:
    """The first QUEUE_SHOWN that wait: starts for an execution come before those that are not decided on yet."""
    starts = [(each.at, str(each.kind), None) for each in (*memory.buffered, *memory.triggers)]
    ranges = [(each.next_at, str(Kind.BACKFILL), each.to_at) for each in memory.backfills]
    return [
        ScheduleWait(time=format_instant(at), kind=kind, until=None if until is None else format_instant(until))
        for at, kind, until in [*starts, *ranges][:QUEUE_SHOWN]
    ]
