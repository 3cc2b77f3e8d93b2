"""Flows."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from flowserver.api.rest.models.shared_types import (
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
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.base.limits import RETENTION_DAYS_MAX
from flowserver.operations.flows import DESCRIPTION_CHARACTERS_MAX, Retention
from flowserver.store.flows import FlowRow, OnRetriesExhausted

DEFINITION = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
"""

Definition = Annotated[
    str, Field(description="The flow in the definition language, version v1: the text of a YAML or JSON document.")
]


def as_text(given: object) -> object:
    """The compact text of a document that is given as an object; anything else as it is."""
    return dump_json(given) if isinstance(given, dict) else given


GivenDefinition = Annotated[
    str,
    BeforeValidator(as_text, json_schema_input_type=str | JsonObject),
    Field(
        description="The flow in the definition language, version v1: the text of a YAML or JSON document, which is "
        "kept byte for byte; or the document itself as a JSON object, which is kept as its compact text."
    ),
]
Description = Annotated[
    str, Field(max_length=DESCRIPTION_CHARACTERS_MAX, description="What the flow is for, in the caller's words.")
]

RetentionDays = Annotated[
    int | None,
    Field(
        ge=0,
        le=RETENTION_DAYS_MAX,
        description="How many days the flow's ended executions are kept; 0 for ever, null as long as the server's "
        "setting `retention_days` says.",
    ),
]

WaitsForRedrive = Annotated[
    OnRetriesExhausted,
    Field(
        description="What becomes of an execution whose step fails for good: no retry is left, and no `catch` takes "
        "the failure. `fail` ends it. With `waitForRedrive` the step waits until the execution is redriven or stopped, "
        "or its time is up, and the other branches go on. Counts for executions that are started from then on."
    ),
]

_SUMMARY = {
    "id": "5c1b6c34-40a9-4a2e-b9f6-3f1e4b8cf0a7",
    "name": "order",
    "description": "Takes the money, then ships.",
    "createdTime": "2026-01-02T03:04:05.678Z",
    "lastModifiedTime": "2026-01-02T03:04:05.678Z",
    "retentionDays": None,
    "onRetriesExhausted": "fail",
}


class FlowSummary(Resource):
    """A flow as listings show it: without its definition."""

    model_config = with_examples(_SUMMARY)

    id: Annotated[str, Field(description="Never used again, unlike the name.")]
    name: Name
    description: Description
    created_time: Instant
    last_modified_time: Instant
    retention_days: RetentionDays
    on_retries_exhausted: WaitsForRedrive

    @classmethod
    def of(cls, row: FlowRow) -> Self:
        """The summary of a flow."""
        return cls(**_summary(row))


def _summary(row: FlowRow) -> dict[str, Any]:
    return {
        "id": row.flow_id,
        "name": row.name,
        "description": row.description,
        "created_time": format_instant(row.created_at),
        "last_modified_time": format_instant(row.modified_at),
        "retention_days": row.retention_days,
        "on_retries_exhausted": row.on_retries_exhausted,
    }


FLOW_EXAMPLE = {**_SUMMARY, "definition": DEFINITION}


class Flow(FlowSummary):
    """A flow: a name, and the definition that its next execution follows."""

    model_config = with_examples(FLOW_EXAMPLE)

    definition: Definition

    @classmethod
    def of(cls, row: FlowRow) -> Self:
        """The flow with its definition, exactly as it was given."""
        return cls(**_summary(row), definition=row.definition)


class FlowPage(Resource):
    """Flows, ordered by name."""

    model_config = with_examples({"flows": [_SUMMARY], "nextToken": "parcel"})

    flows: list[FlowSummary]
    next_token: NextToken


class FlowsQuery(PageQuery):
    """Which flows."""

    name_prefix: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_-]{1,128}$", description="Only flows whose names begin so."),
    ] = None


class CreateFlow(RequestBody):
    """A new flow."""

    model_config = with_examples(
        {"name": "order", "description": "Takes the money, then ships.", "definition": DEFINITION}
    )

    name: Name
    definition: GivenDefinition
    description: Description = ""
    retention_days: RetentionDays = None
    on_retries_exhausted: WaitsForRedrive = "fail"


class PutFlow(RequestBody):
    """What a flow shall be."""

    model_config = with_examples({"description": "Takes the money, then ships.", "definition": DEFINITION})

    definition: GivenDefinition
    description: Description | None = None
    retention_days: RetentionDays = None
    on_retries_exhausted: WaitsForRedrive | None = None

    @property
    def kept(self) -> Retention | None:
        """How long executions are to be kept; None if the body does not say."""
        return Retention(self.retention_days) if "retention_days" in self.model_fields_set else None


class UpdateFlow(RequestBody):
    """What to change of a flow; what is absent stays as it is, and so does what is null, but for `retentionDays`."""

    model_config = with_examples({"description": "Takes the money, then ships.", "retentionDays": 7})

    definition: GivenDefinition | None = None
    description: Description | None = None
    retention_days: RetentionDays = None
    on_retries_exhausted: WaitsForRedrive | None = None

    @property
    def kept(self) -> Retention | None:
        """How long executions are to be kept; None if the body does not say."""
        return Retention(self.retention_days) if "retention_days" in self.model_fields_set else None


class StrictQuery(QueryParameters):
    """How to check a definition that is to be kept."""

    strict: Annotated[bool, Field(description="Whether warnings, too, refuse the definition.")] = False


class UpdateFlowQuery(StrictQuery):
    """How to check a change of a flow, and whether to make it."""

    dry_run: Annotated[
        bool, Field(description="Check the change, but do not make it. The reply shows the flow as it is.")
    ] = False


class NewFlowQuery(StrictQuery):
    """What a bare definition cannot say of a new flow."""

    name: Annotated[Name | None, Field(description="The flow's name, if the body is a bare definition.")] = None
    description: Annotated[
        Description | None, Field(description="The flow's description, if the body is a bare definition.")
    ] = None


class FlowQuery(StrictQuery):
    """What a bare definition cannot say of a flow."""

    description: Annotated[
        Description | None, Field(description="The flow's description, if the body is a bare definition.")
    ] = None
