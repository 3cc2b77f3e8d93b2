"""The overview of the whole server."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.counts import Count
from flowserver.api.rest.models.shared_types import Instant, QueryParameters, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject
from flowserver.operations.overview import FAILED_SINCE_MS_MAX, Overview
from flowserver.store.overview.attention import SHOWN_MAX, TEXT_CHARACTERS_MAX, Attention, Kind
from flowserver.store.overview.throughput import BUCKETS, SERIES_ROWS_MAX, Throughput

_COUNT: JsonObject = {"count": 3, "atLeast": False}
_NONE: JsonObject = {"count": 0, "atLeast": False}
_SERIES: JsonObject = {
    "fromTime": "2026-01-01T03:30:00.000Z",
    "bucketSeconds": 1800,
    "completeFrom": "2026-01-01T03:30:00.000Z",
    "started": [0] * (BUCKETS - 1) + [12],
    "failed": [0] * (BUCKETS - 1) + [1],
}
_ATTENTION: JsonObject = {
    "kind": "failed",
    "flowName": "order",
    "name": "order-4711",
    "function": None,
    "since": "2026-01-02T03:04:05.678Z",
    "step": "pack[17].label",
    "error": "FC.Unknown",
    "text": "printer offline",
}
_OVERVIEW: JsonObject = {
    "time": "2026-01-02T03:04:06.001Z",
    "flows": _COUNT,
    "running": _COUNT,
    "late": _NONE,
    "parked": _NONE,
    "waitingForRedrive": _NONE,
    "waitingTasks": _COUNT,
    "parkedInvocations": _NONE,
    "overdueSchedules": _NONE,
    "failedSince": "2026-01-02T00:00:00.000Z",
    "failed": _COUNT,
    "timedOut": _NONE,
    "newWorkRefused": None,
    "deletionsPaused": None,
    "throughput": _SERIES,
    "attention": [_ATTENTION],
}


class OverviewQuery(QueryParameters):
    """Since when failures are counted."""

    failed_since: Annotated[
        str | None,
        Field(
            description="RFC 3339: count failures from the quarter of an hour of this instant, at most "
            f"{FAILED_SINCE_MS_MAX // 86_400_000} days ago; of the last 24 hours if absent.",
            json_schema_extra={"format": "date-time"},
        ),
    ] = None


class Series(Resource):
    """Starts and failures in equal parts of time, the oldest first. The last part has only begun.

    Executions of deleted flows are left out.
    """

    model_config = with_examples(_SERIES)

    from_time: Annotated[Instant, Field(description="When the first part begins.")]
    bucket_seconds: Annotated[int, Field(description="The length of a part: the more a server does, the shorter.")]
    complete_from: Annotated[
        Instant,
        Field(description=f"Before it numbers are too small: only the newest {SERIES_ROWS_MAX:,} executions are read."),
    ]
    started: list[int]
    failed: Annotated[list[int], Field(description="Ends with the status `Failed` or `TimedOut`.")]

    @classmethod
    def of(cls, series: Throughput) -> Self:
        """The series."""
        return cls(
            from_time=format_instant(series.from_ms),
            bucket_seconds=series.bucket_seconds,
            complete_from=format_instant(series.complete_from),
            started=series.started,
            failed=series.failed,
        )


class AttentionItem(Resource):
    """Something that a person should look at."""

    model_config = with_examples(_ATTENTION)

    kind: Kind
    flow_name: str
    name: Annotated[str, Field(description="The execution's or schedule's name, or the invocation's id.")]
    function: Annotated[str | None, Field(description="`service/function` of a parked invocation.")]
    since: Instant
    step: Annotated[str | None, Field(description="The path of the step that failed, or the task that waits.")]
    error: str | None
    text: Annotated[str | None, Field(description=f"Explains it; cut to {TEXT_CHARACTERS_MAX} characters.")]

    @classmethod
    def of(cls, item: Attention) -> Self:
        """The item."""
        return cls(
            kind=item.kind,
            flow_name=item.flow_name,
            name=item.name,
            function=item.function,
            since=format_instant(item.since),
            step=item.step,
            error=item.error,
            text=item.text,
        )


class ServerOverview(Resource):
    """What runs, what failed, what waits; at most some seconds old."""

    model_config = with_examples(_OVERVIEW)

    time: Annotated[Instant, Field(description="When it was read.")]
    flows: Count
    running: Annotated[Count, Field(description="Executions that have not ended.")]
    late: Annotated[
        Count, Field(description="Executions with a wait, a retry or a deadline that has been due for over 10 seconds.")
    ]
    parked: Annotated[Count, Field(description="Executions that the server cannot continue.")]
    waiting_for_redrive: Annotated[Count, Field(description="Executions with failed steps that wait for a redrive.")]
    waiting_tasks: Annotated[Count, Field(description="Tasks that wait for a report with their token.")]
    parked_invocations: Annotated[Count, Field(description="Asynchronous invocations that the server cannot continue.")]
    overdue_schedules: Annotated[
        Count, Field(description="Schedules with a tick that has been due for over 10 seconds and has started nothing.")
    ]
    failed_since: Annotated[Instant, Field(description="Since when `failed` and `timedOut` are counted.")]
    failed: Annotated[Count, Field(description="Executions that ended with the status `Failed`.")]
    timed_out: Annotated[Count, Field(description="Executions that ended with the status `TimedOut`.")]
    new_work_refused: Annotated[
        str | None,
        Field(
            description="Why the node that answers refuses starts, redrives, invocations and messages, such as a disk "
            "that is almost full; null if it accepts them."
        ),
    ]
    deletions_paused: Annotated[
        str | None,
        Field(description="Why the node that answers deletes nothing by its age: its clock was set; null if it does."),
    ]
    throughput: Series
    attention: Annotated[
        list[AttentionItem],
        Field(
            description=f"What to look at, {SHOWN_MAX} of each kind at most: the newest executions that failed in the "
            "last 24 hours, are parked, or wait for a redrive; of all else what has waited for longest."
        ),
    ]

    @classmethod
    def of(cls, overview: Overview) -> Self:
        """The overview."""
        read = overview.snapshot
        return cls(
            time=format_instant(read.at),
            flows=Count.of(read.flows),
            running=Count.of(read.running),
            late=Count.of(read.late),
            parked=Count.of(read.parked),
            waiting_for_redrive=Count.of(read.waiting_for_redrive),
            waiting_tasks=Count.of(read.waiting_tasks),
            parked_invocations=Count.of(read.parked_invocations),
            overdue_schedules=Count.of(read.overdue_schedules),
            failed_since=format_instant(overview.failed_since),
            failed=Count.of(overview.failed),
            timed_out=Count.of(overview.timed_out),
            new_work_refused=overview.new_work_refused,
            deletions_paused=overview.deletions_paused,
            throughput=Series.of(read.throughput),
            attention=[AttentionItem.of(each) for each in read.attention],
        )
