"""Tasks that wait for a report, and the reports."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.executions import Cause, Document, ErrorName
from flowserver.api.rest.models.shared_types import (
    EXECUTION_PATTERN,
    Instant,
    Name,
    NextToken,
    PageQuery,
    RequestBody,
    Resource,
    with_examples,
)
from flowserver.base.clock import format_instant
from flowserver.operations.tasks import ShownTask

_TOKEN = "djEjMDE5YjdkM2UtMmY2YS03YzUxLTlkMGYtMWYwYzZhNGU4YjIxIzEjMiMj"  # noqa: S105 - an example
_WAITING = {
    "flowName": "order",
    "executionName": "order-4711",
    "stepName": "approve",
    "enteredEventId": 2,
    "enteredTime": "2026-01-02T03:04:05.678Z",
    "dueTime": "2026-01-03T03:04:05.678Z",
    "taskToken": _TOKEN,
}
OLDER_THAN_SECONDS_MAX = 31_536_000

TaskToken = Annotated[
    str,
    Field(min_length=1, description="The task's token, from `$context.task.token` or from its TaskSubmitted event."),
]


class TaskSuccess(RequestBody):
    """A task has done its work."""

    model_config = with_examples({"taskToken": _TOKEN, "output": {"approved": True}})

    task_token: TaskToken
    output: Annotated[Document, Field(default_factory=dict, description="The task's result; `{}` if absent.")]


class TaskFailure(RequestBody):
    """A task has failed."""

    model_config = with_examples({"taskToken": _TOKEN, "error": "Rejected", "cause": "above the limit"})

    task_token: TaskToken
    error: ErrorName
    cause: Cause | None = None


class TaskReceipt(Resource):
    """The report is kept and the execution goes on."""

    model_config = with_examples({"eventId": 6})

    event_id: Annotated[int, Field(description="Id of the event that records the report.")]


class TaskQuery(PageQuery):
    """Which tasks; all conditions must hold."""

    flow: Annotated[Name | None, Field(description="Only tasks of this flow's executions.")] = None
    execution: Annotated[
        str | None,
        Field(pattern=EXECUTION_PATTERN, description="Only tasks of this execution of `flow`."),
    ] = None
    older_than_seconds: Annotated[
        int, Field(ge=0, le=OLDER_THAN_SECONDS_MAX, description="Only tasks that have waited for so long at least.")
    ] = 0


class WaitingTask(Resource):
    """A task that waits for a report."""

    model_config = with_examples(_WAITING)

    flow_name: str
    execution_name: str
    step_name: Annotated[str, Field(description="Empty if the history is damaged.")]
    entered_event_id: Annotated[int, Field(description="The event by which the execution entered the step.")]
    entered_time: Instant
    due_time: Annotated[Instant | None, Field(description="When the attempt times out; null if it never does.")]
    task_token: TaskToken

    @classmethod
    def of(cls, shown: ShownTask) -> Self:
        """The task with its token."""
        task = shown.task
        return cls(
            flow_name=task.flow_name,
            execution_name=task.execution_name,
            step_name=task.step_name,
            entered_event_id=task.entered_event_id,
            entered_time=format_instant(task.entered_at),
            due_time=None if task.due_at is None else format_instant(task.due_at),
            task_token=shown.token,
        )


class TaskPage(Resource):
    """Tasks, those of the oldest executions first."""

    model_config = with_examples({"tasks": [_WAITING], "nextToken": None})

    tasks: list[WaitingTask]
    next_token: NextToken
