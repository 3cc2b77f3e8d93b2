"""Iterations of foreach steps."""

from typing import Annotated, Literal, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import LIMITS, Instant, NextToken, Resource, with_examples
from flowserver.api.rest.models.steps import Iterations, StepQuery
from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject
from flowserver.base.step_paths import STEP_PATTERN
from flowserver.machine.foreach_iterations import Iteration as IterationSummary
from flowserver.machine.step_summary import StepStatus

IterationStatus = Literal[StepStatus.RUNNING, StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED]

_ITERATION: JsonObject = {
    "index": 17,
    "path": "pack[17]",
    "status": "Failed",
    "step": "label",
    "attempts": 3,
    "error": "FC.Unknown",
    "first": "2026-01-02T03:04:05.678Z",
    "last": "2026-01-02T03:04:06.001Z",
}


class IterationQuery(StepQuery):
    """Which page of the iterations of which step."""

    step: Annotated[
        str,
        Field(
            pattern=STEP_PATTERN,
            max_length=LIMITS.step_path_characters_max,
            description="The path of the foreach step: `pack`, or `pack[3].inner` in an iteration of another.",
        ),
    ]
    status: Annotated[IterationStatus | None, Field(description="Only iterations with this status.")] = None


class Iteration(Resource):
    """What became of one iteration of a foreach."""

    model_config = with_examples(_ITERATION)

    index: Annotated[int, Field(description="Counts from 0.")]
    path: Annotated[str, Field(description="The step's path with the index; events can be listed by it.")]
    status: Annotated[
        IterationStatus,
        Field(description="`Cancelled`: cut short by the failure of another, or by the end of the execution."),
    ]
    step: Annotated[
        str | None, Field(description="The step in it that was entered last, by its path within the iteration.")
    ]
    attempts: Annotated[int, Field(description="Attempts of its tasks, but not of those of a foreach in it.")]
    error: Annotated[
        str | None, Field(description="The last error of an attempt or a step in it; null once that has succeeded.")
    ]
    first: Annotated[Instant, Field(description="When it began; if a redrive began it again, then.")]
    last: Annotated[Instant, Field(description="The last event of its steps.")]

    @classmethod
    def of(cls, iteration: IterationSummary) -> Self:
        """The iteration as the API shows it."""
        return cls(
            index=iteration.index,
            path=iteration.path,
            status=iteration.status,
            step=iteration.step,
            attempts=iteration.attempts,
            error=iteration.error,
            first=format_instant(iteration.first_ms),
            last=format_instant(iteration.last_ms),
        )


_COUNTS: JsonObject = {"total": 500, "done": 493, "failed": 7, "aborted": 0, "running": 0}


class IterationPage(Resource):
    """Iterations that have begun, by their index."""

    model_config = with_examples(
        {"iterations": [_ITERATION], "counts": _COUNTS, "lastEventId": 1234, "nextToken": None}
    )

    iterations: list[Iteration]
    counts: Annotated[Iterations, Field(description="Of all iterations of the step.")]
    last_event_id: Annotated[int, Field(description="They are as they were after this event.")]
    next_token: NextToken
