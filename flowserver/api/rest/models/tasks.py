"""Reports on tasks that wait for them."""

from typing import Annotated

from pydantic import Field

from flowserver.api.rest.models.base import RequestBody, Resource, with_examples
from flowserver.api.rest.models.executions import Cause, Document, ErrorName

_TOKEN = "djEjMDE5YjdkM2UtMmY2YS03YzUxLTlkMGYtMWYwYzZhNGU4YjIxIzEjMiMj"  # noqa: S105 - an example

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
