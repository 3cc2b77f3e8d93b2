"""/v1/definitions: checks and graphs of definitions that are not stored, and the language for editors."""

from functools import partial
from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from flowserver.api.large_bodies import page_in_pieces
from flowserver.api.rest.answers import PageOfPieces, answer
from flowserver.api.rest.bodies import json_body, read_definition
from flowserver.api.rest.described_bodies import definition_request, json_request
from flowserver.api.rest.models.definition_checks import DefinitionReport, ValidateDefinition, ValidationQuery
from flowserver.api.rest.models.definition_graphs import DefinitionGraph, DrawDefinition
from flowserver.api.rest.models.definition_language import LANGUAGE, DefinitionLanguage
from flowserver.api.rest.models.definition_rules import RuleList, rule_list
from flowserver.api.rest.models.definition_tests import DefinitionTestReport, TestDefinition
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import MissingParameter, UnsupportedMediaType

router = rest_router("/definitions", "definitions")


@router.post(
    "/validate",
    summary="Check a definition",
    response_model=DefinitionReport,
    responses=problems(MissingParameter, UnsupportedMediaType),
    openapi_extra=definition_request(ValidateDefinition),
)
async def validate_definition(
    request: Request, operations: Ops, query: Annotated[ValidationQuery, Query()]
) -> Response:
    """Say everything that is wrong with a definition, and what is doubtful. The body is JSON or the bare definition.

    The reply is 200 even if the definition is not valid: the question was answered. In a valid one it also finds what
    `flowserver prove` finds; a comment `# flowserver: ignore RULE reason` suppresses that.
    """
    wanted = await read_definition(request, ValidateDefinition, {})
    found = await operations.flows.diagnose(wanted.definition, lenient=query.lenient, rules=query.rules)
    return answer(DefinitionReport.of(found))


@router.get(
    "/language", summary="Describe the definition language", response_model=DefinitionLanguage, responses=problems()
)
async def describe_language() -> Response:
    """The kinds of objects that definitions are made of, with their attributes: for editors that complete them."""
    return answer(LANGUAGE)


@router.get("/rules", summary="List the rules", response_model=RuleList, responses=problems())
async def list_rules() -> Response:
    """The rules of `flowserver prove`, and why their findings are true, with a flow that has one."""
    return answer(rule_list())


@router.post(
    "/graph",
    summary="Describe a definition as a graph",
    response_model=DefinitionGraph,
    responses=problems(MissingParameter, UnsupportedMediaType),
    openapi_extra=definition_request(DrawDefinition),
)
async def draw_definition(request: Request, operations: Ops) -> Response:
    """Show the steps of a definition, its lists of steps, and the edges that control can take.

    Unknown attributes and empty ones are left out, as in flows that are stored. The body is JSON or the bare
    definition. A definition with errors is refused with its `diagnostics`.
    """
    wanted = await read_definition(request, DrawDefinition, {})
    picture = await operations.flows.picture(wanted.definition)
    return PageOfPieces(await operations.encoding.run(partial(page_in_pieces, DefinitionGraph.parts_of(picture))))


@router.post(
    "/test",
    summary="Run tests of a definition",
    response_model=DefinitionTestReport,
    responses=problems(MissingParameter, UnsupportedMediaType),
    openapi_extra=json_request(TestDefinition),
)
async def test_definition(
    operations: Ops, wanted: Annotated[TestDefinition, Depends(json_body(TestDefinition))]
) -> Response:
    """Run a definition with mocked calls in virtual time, as `flowserver test` does, and say what differs.

    Nothing is stored and nothing is called. `tests` is a flow test file. The file that its `flow` names is not read:
    the tests are of this definition. `real` is a mistake here. The reply is 200 if the tests fail, and if the test file
    has mistakes; then none has run. A definition with errors is refused with its `diagnostics`.
    """
    tested = await operations.flow_tests.run(wanted.definition, wanted.tests)
    return PageOfPieces(await operations.encoding.run(lambda: page_in_pieces(DefinitionTestReport.parts_of(tested))))
