"""Executions."""

from typing import Annotated, Any, Self

from pydantic import Field

from flowserver.api.rest.models.flows import DEFINITION
from flowserver.api.rest.models.shared_types import (
    LIMITS,
    QUALIFIER_PATTERN,
    TOKEN_PATTERN,
    Instant,
    Name,
    NextToken,
    PageQuery,
    QueryParameters,
    RequestBody,
    Resource,
    with_examples,
)
from flowserver.base.clock import format_instant
from flowserver.base.json_values import InvalidJson, JsonObject, load_json_object
from flowserver.machine.state import Status
from flowserver.operations.current_steps import SHOWN_MAX, CurrentSteps, Standing
from flowserver.operations.current_steps import CurrentStep as Current
from flowserver.operations.executions import RUNNING_SUB_FLOWS_MAX
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.flows import OnRetriesExhausted

Document = Annotated[dict[str, Any], Field(description="Any JSON object; integers keep all their digits.")]
ErrorName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LIMITS.error_characters_max,
        description=f"An error's name, 1 to {LIMITS.error_characters_max} characters; `retry` and `catch` match it.",
    ),
]
Cause = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LIMITS.cause_characters_max,
        description=f"What happened, in words; 1 to {LIMITS.cause_characters_max} characters.",
    ),
]
Wait = Annotated[
    int,
    Field(
        ge=0,
        le=LIMITS.describe_wait_seconds_max,
        description="Seconds to wait for the execution's end, "
        f"0 to {LIMITS.describe_wait_seconds_max}. The reply shows the execution as it is then, ended or not.",
    ),
]

_SUMMARY: JsonObject = {
    "id": "019b7d3e-2f6a-7c51-9d0f-1f0c6a4e8b21",
    "flowName": "order",
    "name": "order-4711",
    "status": "Succeeded",
    "error": None,
    "cause": None,
    "failedStep": None,
    "parkedError": None,
    "version": 3,
    "alias": "prod",
    "startedTime": "2026-01-02T03:04:05.678Z",
    "stoppedTime": "2026-01-02T03:04:06.001Z",
    "onRetriesExhausted": "fail",
    "waitingSteps": 0,
    "redriveCount": 0,
    "lastRedriveTime": None,
}


_CURRENT: JsonObject = {
    "path": "pack[17].label",
    "status": "Retrying",
    "since": "2026-01-02T03:04:05.678Z",
    "until": "2026-01-02T03:05:05.678Z",
    "attempts": 2,
    "child": None,
}


class ExecutionSummary(Resource):
    """An execution as listings show it: without its documents."""

    model_config = with_examples(_SUMMARY)

    id: Annotated[str, Field(description="Never used again, unlike the name.")]
    flow_name: str
    name: Annotated[str, Field(description="Unique among the flow's executions.")]
    status: Status
    error: Annotated[str | None, Field(description="Name of the error that ended it; null if none did.")]
    cause: Annotated[str | None, Field(description="What happened, in words; null if no error ended it.")]
    failed_step: Annotated[
        str | None,
        Field(description="The path of the step whose failure ended it, such as `pack[17].label`; null if none did."),
    ]
    parked_error: Annotated[
        str | None,
        Field(description="Why the server has set a running execution aside (parked it); null while all is well."),
    ]
    version: Annotated[
        int | None,
        Field(description="The published version of the flow that it runs; null for the flow's own definition."),
    ]
    alias: Annotated[str | None, Field(description="The alias that chose the version; null without one.")]
    started_time: Instant
    stopped_time: Annotated[Instant | None, Field(description="Null while it runs.")]
    on_retries_exhausted: Annotated[
        OnRetriesExhausted,
        Field(description="The flow's setting at its start: what a step that fails for good does to the execution."),
    ]
    waiting_steps: Annotated[
        int,
        Field(
            description="How many of its steps have failed and wait for a redrive, by the flow's `onRetriesExhausted`; "
            "then `error`, `cause` and `failedStep` are those of the first."
        ),
    ]
    redrive_count: Annotated[int, Field(description="How often it was redriven.")]
    last_redrive_time: Annotated[Instant | None, Field(description="Null if it never was.")]

    @classmethod
    def of(cls, row: ExecutionRow) -> Self:
        """The summary of an execution."""
        return cls(**_summary(row))


def _summary(row: ExecutionRow) -> dict[str, Any]:
    return {
        "id": row.execution_id,
        "flow_name": row.flow_name,
        "name": row.name,
        "status": row.status,
        "error": row.error,
        "cause": row.cause,
        "failed_step": row.failed_step,
        "parked_error": row.parked_error,
        "version": row.flow_version,
        "alias": row.flow_alias,
        "started_time": format_instant(row.started_at),
        "stopped_time": None if row.stopped_at is None else format_instant(row.stopped_at),
        "on_retries_exhausted": "fail" if row.waiting_steps is None else "waitForRedrive",
        "waiting_steps": row.waiting_steps or 0,
        "redrive_count": row.redrive_count,
        "last_redrive_time": None if row.redriven_at is None else format_instant(row.redriven_at),
    }


class CurrentStep(Resource):
    """A step that an execution is at."""

    model_config = with_examples(_CURRENT)

    path: Annotated[str, Field(description="With branch and iteration: `pack[17].label`.")]
    status: Annotated[
        Standing,
        Field(
            description="`WaitingForToken`: for a report with its task token. After the end of the execution `Failed`, "
            "or `Aborted` if the step was under way."
        ),
    ]
    since: Annotated[
        Instant | None, Field(description="When it was entered; of one that waits for a redrive, when it failed.")
    ]
    until: Annotated[
        Instant | None,
        Field(description="The end of its wait, of its pause before the next attempt, or of the attempt's time."),
    ]
    attempts: Annotated[int, Field(description="Calls that were made so far; 0 if it is no task.")]
    child: Annotated[
        str | None,
        Field(
            description="Of a step that waits for a sub-flow, or failed by one: that execution, written `flow/name`."
        ),
    ]

    @classmethod
    def of(cls, step: Current) -> Self:
        """The step as the API shows it."""
        return cls(
            path=step.path,
            status=step.standing,
            since=None if step.since is None else format_instant(step.since),
            until=None if step.until is None else format_instant(step.until),
            attempts=step.attempts,
            child=step.child,
        )


class ExecutionState(ExecutionSummary):
    """An execution without its documents, as `documents=false` shows it."""

    model_config = with_examples(_SUMMARY)

    current_steps: Annotated[
        list[CurrentStep] | None,
        Field(
            description=f"The steps that it is at, or at which it ended without success: {SHOWN_MAX} at most. "
            "Only if asked for with `currentSteps`, otherwise null."
        ),
    ] = None
    current_step_count: Annotated[int | None, Field(description="How many these are in all; null as above.")] = None
    parent: Annotated[
        str | None,
        Field(
            description="FLOW/NAME of the execution that gets the result of this one, if it is a sub-flow. "
            "Only if asked for with `currentSteps`."
        ),
    ] = None

    @classmethod
    def of(cls, row: ExecutionRow, current: CurrentSteps | None = None) -> Self:
        """The execution, and the steps that it is at if they were asked for."""
        return cls(**_state(row, current))


def _state(row: ExecutionRow, current: CurrentSteps | None) -> dict[str, Any]:
    return {
        **_summary(row),
        "current_steps": None if current is None else [CurrentStep.of(each) for each in current.steps],
        "current_step_count": None if current is None else current.count,
        "parent": None if current is None else current.parent,
    }


class Execution(ExecutionState):
    """One run of a flow. It follows the definition that the flow had when it was started."""

    model_config = with_examples(
        {**_SUMMARY, "input": {"orderId": 4711}, "output": {"paid": True}, "definition": DEFINITION}
    )

    input: Annotated[Document, Field(description="`{}` if what is stored is damaged.")]
    output: Annotated[Document | None, Field(description="Null unless the execution has succeeded; or damaged.")]
    definition: Annotated[str, Field(description="The definition that it follows.")]

    @classmethod
    def of(cls, row: ExecutionRow, current: CurrentSteps | None = None) -> Self:
        """The execution with its documents, and the steps that it is at if they were asked for."""
        return cls(
            **_state(row, current),
            input=_stored_document(row.input) or {},
            output=_stored_document(row.output),
            definition=row.definition,
        )


class StoppedExecution(Execution):
    """An execution that a request has stopped."""

    running_sub_flows: Annotated[
        tuple[str, ...],
        Field(description=f"FLOW/NAME of independent sub-flows that run on: {RUNNING_SUB_FLOWS_MAX} at most."),
    ] = ()


def _stored_document(text: str | None) -> JsonObject | None:
    """The document; None if there is none, or none that can be read: a damaged execution must still be seen."""
    try:
        return load_json_object(text) if text else None
    except InvalidJson:
        return None


class ExecutionPage(Resource):
    """Executions of a flow, the newest first."""

    model_config = with_examples({"executions": [_SUMMARY], "nextToken": None})

    executions: list[ExecutionSummary]
    next_token: NextToken


class StartExecution(RequestBody):
    """How to start an execution; everything may be absent, and so may the body."""

    model_config = with_examples({"name": "order-4711", "input": {"orderId": 4711}})

    name: Annotated[Name | None, Field(description="Makes the start idempotent; a random one if absent.")] = None
    input: Annotated[Document | None, Field(description="The execution's input; `{}` if absent.")] = None
    callback_task_token: Annotated[
        str | None,
        Field(description="Token of a waiting task that is to be told how this execution ends."),
    ] = None
    qualifier: Annotated[
        str | None,
        Field(
            pattern=QUALIFIER_PATTERN,
            description="The published version to run, such as `3`, or the alias that chooses it; the flow's own "
            "definition if absent, null or `LATEST`.",
        ),
    ] = None


class StopExecution(RequestBody):
    """Why an execution is stopped; everything may be absent, and so may the body."""

    model_config = with_examples({"error": "Cancelled", "cause": "the customer changed her mind"})

    error: ErrorName | None = None
    cause: Cause | None = None


class ExecutionQuery(PageQuery):
    """Which executions; all conditions must hold."""

    limit: Annotated[
        int | None,
        Field(
            ge=1,
            le=LIMITS.executions_page_max,
            description=f"Items on the page, 1 to {LIMITS.executions_page_max}; 60 if not given.",
        ),
    ] = None
    status: Annotated[Status | None, Field(description="Only executions in this state.")] = None
    started_from: Annotated[
        str | None,
        Field(
            description="Only executions started at this instant or later; RFC 3339 with an offset.",
            json_schema_extra={"format": "date-time"},
        ),
    ] = None
    started_to: Annotated[
        str | None,
        Field(
            description="Only executions started at this instant or before; RFC 3339 with an offset.",
            json_schema_extra={"format": "date-time"},
        ),
    ] = None
    ended_from: Annotated[
        str | None,
        Field(
            description="Only executions that ended at this instant or later; RFC 3339 with an offset. Needs the "
            "`status` `Failed`, `Stopped` or `TimedOut`.",
            json_schema_extra={"format": "date-time"},
        ),
    ] = None
    ended_to: Annotated[
        str | None,
        Field(
            description="Only executions that ended at this instant or before; as `endedFrom`.",
            json_schema_extra={"format": "date-time"},
        ),
    ] = None
    parked: Annotated[
        bool | None, Field(description="Only executions that are parked: running, but set aside; or only others.")
    ] = None
    waiting_for_redrive: Annotated[
        bool, Field(description="Only executions that run, of which steps have failed and wait for a redrive.")
    ] = False
    name_prefix: Annotated[
        str | None, Field(pattern=TOKEN_PATTERN, description="Only executions whose names begin so.")
    ] = None
    qualifier: Annotated[
        str | None,
        Field(
            pattern=QUALIFIER_PATTERN,
            description="Only executions that run this version, such as `3`, or a version that this alias chose, or "
            "with `LATEST` the flow's own definition.",
        ),
    ] = None


class AllExecutionsQuery(ExecutionQuery):
    """Which executions of all flows; all conditions must hold."""

    flow: Annotated[Name | None, Field(description="Only executions of this flow.")] = None


class WaitQuery(QueryParameters):
    """Whether to wait for the end."""

    wait: Wait = 0


class DescribeQuery(WaitQuery):
    """Whether to wait for the end, and what to show."""

    current_steps: Annotated[bool, Field(description="Show also the steps that it is at.")] = False
    documents: Annotated[
        bool, Field(description="With `false` the reply leaves out `input`, `output` and `definition`.")
    ] = True
