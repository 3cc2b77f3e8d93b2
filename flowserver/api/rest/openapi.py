"""The OpenAPI document, made from the routes and models."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from flowserver import __version__
from flowserver.api.rest.models.audit import AuditPage
from flowserver.api.rest.models.definition_checks import DefinitionReport, ValidateDefinition
from flowserver.api.rest.models.definition_graphs import DefinitionGraph, DrawDefinition
from flowserver.api.rest.models.definition_language import DefinitionLanguage
from flowserver.api.rest.models.definition_rules import RuleList
from flowserver.api.rest.models.definition_tests import DefinitionTestReport, TestDefinition
from flowserver.api.rest.models.deployed_flow import DeployedFlow
from flowserver.api.rest.models.events import EventPage
from flowserver.api.rest.models.executions import (
    Execution,
    ExecutionPage,
    ExecutionState,
    StartExecution,
    StopExecution,
    StoppedExecution,
)
from flowserver.api.rest.models.flows import CreateFlow, Flow, FlowPage, PutFlow, UpdateFlow
from flowserver.api.rest.models.functions import (
    DeployedFunction,
    Function,
    FunctionHealthPage,
    FunctionPage,
    OneFunctionHealth,
    PutFunction,
)
from flowserver.api.rest.models.invocations import Invocation, InvocationPage
from flowserver.api.rest.models.iterations import IterationPage
from flowserver.api.rest.models.overview import ServerOverview
from flowserver.api.rest.models.problems import Problem
from flowserver.api.rest.models.queues import (
    PeekedMessages,
    PublishMessage,
    PurgedQueue,
    Queue,
    QueuePage,
    SendMessage,
    SentMessage,
    Topic,
    TopicPage,
)
from flowserver.api.rest.models.redrives import ManyRedriven, RedriveExecution, RedriveMany, RedrivePreview
from flowserver.api.rest.models.schedules import (
    BackfillSchedule,
    CreateSchedule,
    PutSchedule,
    Schedule,
    ScheduleBackfill,
    ScheduleNote,
    SchedulePage,
    ScheduleTrigger,
    TriggerSchedule,
    UpdateSchedule,
)
from flowserver.api.rest.models.secrets import PutSecret, Secret, SecretPage
from flowserver.api.rest.models.server import AccessKeyPage, NewKey, NodePage, Permissions
from flowserver.api.rest.models.steps import StepChanges, StepPage
from flowserver.api.rest.models.tasks import TaskFailure, TaskPage, TaskReceipt, TaskSuccess
from flowserver.api.rest.models.versions import (
    CreateAlias,
    FlowAlias,
    FlowAliasPage,
    FlowVersion,
    FlowVersionPage,
    PublishVersion,
    PutAlias,
    UpdateAlias,
)

MODELS = (
    *(FlowPage, Flow, DeployedFlow, CreateFlow, PutFlow, UpdateFlow),
    *(FlowVersionPage, FlowVersion, PublishVersion),
    *(FlowAliasPage, FlowAlias, CreateAlias, PutAlias, UpdateAlias),
    *(ExecutionPage, Execution, ExecutionState, StartExecution, StopExecution, StoppedExecution),
    *(StepPage, StepChanges, IterationPage, EventPage),
    *(RedriveExecution, RedrivePreview, RedriveMany, ManyRedriven),
    *(SchedulePage, Schedule, CreateSchedule, PutSchedule, UpdateSchedule),
    *(ScheduleNote, TriggerSchedule, ScheduleTrigger, BackfillSchedule, ScheduleBackfill),
    *(TaskPage, TaskSuccess, TaskFailure, TaskReceipt),
    *(FunctionPage, Function, PutFunction, DeployedFunction, FunctionHealthPage, OneFunctionHealth),
    *(SecretPage, Secret, PutSecret),
    *(InvocationPage, Invocation),
    *(QueuePage, Queue, PeekedMessages, SendMessage, SentMessage, PurgedQueue),
    *(TopicPage, Topic, PublishMessage),
    *(DrawDefinition, DefinitionGraph),
    *(TestDefinition, DefinitionTestReport, RuleList),
    *(ServerOverview, Permissions, NodePage, AccessKeyPage, NewKey, AuditPage),
    *(ValidateDefinition, DefinitionReport, DefinitionLanguage, Problem),
)
"""Everything that requests and replies can be; what these contain comes along."""

DESCRIPTION = """\
Flows, executions and functions of this server.

**Access.** Send `Authorization: Bearer TOKEN` with the token that `flowserver keys create` shows once. While the
server has no keys it needs none, and answers programs on its own machine only.

**Documents.** `input` and `output` are JSON objects. Integers keep all their digits; NaN, infinities and text that is
not valid Unicode are refused. Instants are RFC 3339 in UTC; durations are whole seconds.

**Errors** are `application/problem+json` (RFC 9457). Branch on `code`: it is the same in every API of this server.
`requestId`, also in the header `X-Request-Id`, names the request in the server's log. A query parameter or a field
that is not known is an error.

**Listings** come in pages: give `nextToken` of one page to read the next.
"""

TAGS = [
    {"name": "flows", "description": "What can be executed."},
    {"name": "versions", "description": "Definitions of flows that were published and do not change."},
    {"name": "aliases", "description": "Names that route starts to versions."},
    {"name": "executions", "description": "Flows at work, and their histories."},
    {"name": "schedules", "description": "When flows start by themselves."},
    {"name": "tasks", "description": "Callbacks of steps with the pattern `waitForCallback`."},
    {"name": "functions", "description": "Where the functions that flows name are called."},
    {"name": "secrets", "description": "Values that functions' URLs and headers refer to, encrypted and never shown."},
    {"name": "invocations", "description": "Asynchronous invocations that the server has parked: restarted, stopped."},
    {"name": "queues", "description": "Queues and topics, for people who look after them."},
    {"name": "server", "description": "The server itself: what runs, and what a person should look at."},
    {"name": "definitions", "description": "Checks without consequences, and the language for editors."},
]


SERVER = {"url": "/", "description": "This server."}


class _Schemas(GenerateJsonSchema):
    """Schemas without titles that only repeat a field's name, in the models' own order."""

    def field_title_should_be_set(self, _schema: Any) -> bool:
        """Never."""
        return False

    def sort(self, value: Any, _parent_key: str | None = None) -> Any:
        """Nothing is sorted."""
        return value


def openapi_document(routers: Sequence[APIRouter]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the routers' operations."""
    routes = [route for router in routers for route in router.routes]
    document = get_openapi(
        title="flowserver",
        version=__version__,
        description=DESCRIPTION,
        tags=TAGS,
        routes=routes,
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
    )
    document["servers"] = [SERVER]
    document["components"]["schemas"] = _schemas()
    for route in routes:
        if isinstance(route, APIRoute):
            _put_examples(document["paths"][route.path_format], route)
    for path in document["paths"].values():
        for operation in path.values():
            _tidy(operation)
    return document


def _schemas() -> dict[str, Any]:
    """The framework's own would lack the bodies that the routes read themselves, and the nulls in examples."""
    _, schemas = models_json_schema(
        [(model, "validation") for model in MODELS],
        ref_template="#/components/schemas/{model}",
        schema_generator=_Schemas,
    )
    found: dict[str, Any] = schemas["$defs"]
    return found


def _put_examples(path: dict[str, Any], route: APIRoute) -> None:
    """Show examples of replies as they are: the framework leaves out fields that are null."""
    for method in route.methods or ():
        replies = path[method.lower()]["responses"]
        for status, response in route.responses.items():
            for media_type, content in response.get("content", {}).items():
                shown = replies[str(status)]["content"][media_type]
                shown |= {name: content[name] for name in ("example", "examples") if name in content}


def _tidy(operation: dict[str, Any]) -> None:
    operation["responses"].pop("422", None)  # the framework's; this server never sends it
    operation["responses"] = dict(sorted(operation["responses"].items()))
    for parameter in operation.get("parameters", ()):
        parameter["schema"].pop("title", None)
        parameter["schema"].pop("description", None)
