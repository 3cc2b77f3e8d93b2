"""Step summaries of executions."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Instant, NextToken, PageQuery, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject
from flowserver.machine.state import Status
from flowserver.machine.step_summary import ATTEMPTS_KEPT, VISITS_KEPT, EdgeKind, StepStatus, StepSummary
from flowserver.machine.step_summary import Attempt as AttemptSummary
from flowserver.machine.step_summary import Edge as EdgeSummary
from flowserver.machine.step_summary import Iterations as IterationCounts
from flowserver.machine.step_summary import Visit as VisitSummary
from flowserver.operations.history_search import EVENT_ID_MAX
from flowserver.operations.step_changes import StepChanges as Changes

_STEP: JsonObject = {
    "path": "pack",
    "status": "Running",
    "entered": 1,
    "running": 1,
    "waiting": 0,
    "succeeded": 0,
    "failed": 0,
    "attempts": 0,
    "lastAttempts": [],
    "redrives": 0,
    "error": None,
    "first": "2026-01-02T03:04:05.678Z",
    "began": "2026-01-02T03:04:05.678Z",
    "last": "2026-01-02T03:04:06.001Z",
    "iterations": {"total": 500, "done": 412, "failed": 0, "aborted": 0, "running": 88},
    "visits": [
        {
            "first": "2026-01-02T03:04:05.678Z",
            "last": None,
            "status": "Running",
            "attempts": [],
            "error": None,
        }
    ],
    "visitCount": 1,
    "options": {},
    "edges": [{"to": "pack[].label", "kind": "iteration", "index": None, "count": 500}],
}


class Iterations(Resource):
    """The iterations of a foreach; of all its entries together, if it is in a loop."""

    total: Annotated[int, Field(description="Those included that wait for a slot, or were never begun.")]
    done: int
    failed: int
    aborted: Annotated[
        int, Field(description="Begun, and cut short: by the failure of another, or by the end of the execution.")
    ]
    running: int

    @classmethod
    def of(cls, loop: IterationCounts) -> Self:
        """The counts as the API shows them."""
        return cls(total=loop.total, done=loop.done, failed=loop.failed, aborted=loop.aborted, running=loop.running)


class Attempt(Resource):
    """One attempt of a task."""

    first: Instant
    last: Annotated[Instant | None, Field(description="Null while it runs.")]
    error: Annotated[
        str | None,
        Field(description="Null while it runs, and if it succeeded; `Cancelled` if the end of its step cut it short."),
    ]

    @classmethod
    def of(cls, attempt: AttemptSummary) -> Self:
        """The attempt as the API shows it."""
        last = None if attempt.last_ms is None else format_instant(attempt.last_ms)
        return cls(first=format_instant(attempt.first_ms), last=last, error=attempt.error)


class Visit(Resource):
    """One entry of a step."""

    first: Instant
    last: Annotated[Instant | None, Field(description="Null while it runs.")]
    status: StepStatus
    attempts: Annotated[list[Attempt], Field(description=f"The last {ATTEMPTS_KEPT} attempts of a task, in order.")]
    error: str | None

    @classmethod
    def of(cls, visit: VisitSummary) -> Self:
        """The visit as the API shows it."""
        return cls(
            first=format_instant(visit.first_ms),
            last=None if visit.last_ms is None else format_instant(visit.last_ms),
            status=visit.status,
            attempts=[Attempt.of(each) for each in visit.attempts],
            error=visit.error,
        )


class Edge(Resource):
    """Where control went from a step, and how often."""

    to: Annotated[str | None, Field(description="The path of the step that was entered; null at the end of its list.")]
    kind: Annotated[
        EdgeKind,
        Field(
            description="`option`, `default`: a choice took it, to its first own step or on at once. `after`: the "
            "option's own steps were done. `catch`: the step failed and a rule caught it. Else `next`, `branch` or "
            "`iteration`."
        ),
    ]
    index: Annotated[
        int | None,
        Field(
            description="The option, catch rule or branch, from 0. Null for a default, and if the history does not "
            "record it."
        ),
    ]
    count: int

    @classmethod
    def of(cls, edge: EdgeSummary, count: int) -> Self:
        """The edge as the API shows it."""
        return cls(to=edge.to, kind=edge.kind, index=edge.number, count=count)


class Step(Resource):
    """What became of one step path. A step in a loop or in an iteration is entered many times, and counted together."""

    model_config = with_examples(_STEP)

    path: Annotated[
        str,
        Field(
            description="The step, with the steps around it: `pack[].label` in all iterations of the foreach `pack`, "
            "`ship[1].book` in the second branch of the parallel step `ship`."
        ),
    ]
    status: Annotated[
        StepStatus,
        Field(
            description="`Running` while any entry runs; then `Failed` if any failed, or `Cancelled` if any was cut "
            "short; else what the last one came to. `Caught`: it failed, and its `catch` went on elsewhere."
        ),
    ]
    entered: Annotated[int, Field(description="How often it was entered.")]
    running: Annotated[int, Field(description="Entries that run now.")]
    waiting: Annotated[int, Field(description="Of these, those that have failed and wait for a redrive.")]
    succeeded: int
    failed: Annotated[int, Field(description="Entries that failed, those that were caught included.")]
    attempts: Annotated[
        int, Field(description="Attempts of a task in its last run, of all entries together; 0 for other steps.")
    ]
    last_attempts: Annotated[
        list[Attempt],
        Field(description=f"The last of them, {ATTEMPTS_KEPT} at most, in order; none of a step in an iteration."),
    ]
    redrives: Annotated[int, Field(description="How many redrives of the execution have run it again.")]
    error: Annotated[
        str | None, Field(description="The last error of an attempt or of the step; null once it has succeeded.")
    ]
    first: Annotated[Instant, Field(description="When it was entered first.")]
    began: Annotated[
        Instant,
        Field(description="When its last run began: as `first`, or after the last redrive that has run it again."),
    ]
    last: Annotated[Instant, Field(description="Its last event.")]
    iterations: Annotated[Iterations | None, Field(description="Null unless it is a foreach that has begun one.")]
    visits: Annotated[
        list[Visit],
        Field(
            description=f"Its entries, those before redrives included: the first {VISITS_KEPT} and the last "
            f"{VISITS_KEPT}. Those of a step in iterations may overlap."
        ),
    ]
    visit_count: Annotated[int, Field(description="The number of all visits.")]
    options: Annotated[
        dict[str, int],
        Field(
            description="How often a choice took each option, by its number from 0, `default`, or `none` if none held. "
            "Empty for other steps, and for choices in histories that do not record it."
        ),
    ]
    edges: Annotated[list[Edge], Field(description="Where control went from it. A redrive's entries count no edge.")]

    @classmethod
    def of(cls, step: StepSummary) -> Self:
        """The step as the API shows it."""
        loop = step.iterations
        return cls(
            path=step.path,
            status=step.status,
            entered=step.entered,
            running=step.running,
            waiting=step.waiting,
            succeeded=step.succeeded,
            failed=step.failed + step.caught,
            attempts=step.attempts,
            last_attempts=[Attempt.of(each) for each in step.last_attempts],
            redrives=step.redrives,
            error=step.error,
            first=format_instant(step.first_ms),
            began=format_instant(step.began_ms),
            last=format_instant(step.last_ms),
            iterations=loop and Iterations.of(loop),
            visits=[Visit.of(each) for each in step.visits],
            visit_count=step.visit_count,
            options=step.options,
            edges=[Edge.of(edge, count) for edge, count in step.edges.items()],
        )


class StepQuery(PageQuery):
    """Which page of a summary, and after which event."""

    at: Annotated[
        int | None,
        Field(ge=1, le=EVENT_ID_MAX, description="As it was after the event of this id; as it is if absent."),
    ] = None


class SummaryQuery(StepQuery):
    """The same, and how long to read."""

    within: Annotated[
        float | None,
        Field(
            ge=0.05,
            le=60,
            description="Read a history that is yet to be read for about so many seconds at most. Without it all of it "
            "is read.",
        ),
    ] = None


_PAGE: JsonObject = {
    "steps": [_STEP],
    "status": "Running",
    "lastEventId": 1234,
    "lastEventTime": "2026-01-02T03:04:06.001Z",
    "complete": True,
    "nextToken": None,
}


_CHANGES = ("steps", "status", "lastEventId", "lastEventTime")


class StepPage(Resource):
    """Steps in the order in which they were entered first."""

    model_config = with_examples(_PAGE)

    steps: list[Step]
    status: Annotated[Status, Field(description="What the execution was after that event.")]
    last_event_id: Annotated[int, Field(description="They count all events up to this one.")]
    last_event_time: Annotated[Instant | None, Field(description="Its instant; null if no event can be read.")]
    complete: Annotated[
        bool, Field(description="False if `within` was too short: events after that one are yet to be counted.")
    ]
    next_token: NextToken


class StepChanges(Resource):
    """Steps that have changed since an event, in the order in which they were entered first."""

    model_config = with_examples({name: value for name, value in _PAGE.items() if name in _CHANGES})

    steps: Annotated[
        list[Step] | None,
        Field(description="Null if they are too many for one message: read the summary again."),
    ]
    status: Annotated[Status, Field(description="What the execution was after that event.")]
    last_event_id: Annotated[int, Field(description="They count all events up to this one.")]
    last_event_time: Instant

    @classmethod
    def of(cls, changes: Changes) -> Self:
        """The changes as the API shows them."""
        return cls(
            steps=None if changes.steps is None else [Step.of(step) for step in changes.steps],
            status=Status(changes.execution_status),
            last_event_id=changes.last_event_id,
            last_event_time=format_instant(changes.last_ms or 0),
        )
