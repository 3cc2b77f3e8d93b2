"""Calls about definitions that need not be stored: checks, graphs, tests."""

from flowserver.client.calls import send
from flowserver.client.exchanges import Conversation
from flowserver.client.paths import path_of
from flowserver.client.results import DefinitionGraph, DefinitionTests, Nothing


def validate(definition: str) -> Conversation[Nothing]:
    """What the server finds in a definition."""
    return send(Nothing, "POST", path_of("definitions", "validate"), {"definition": definition}, repeatable=True)


def draw_definition(definition: str) -> Conversation[DefinitionGraph]:
    """The steps of a definition and the edges that control can take; raises BadRequest if it has errors."""
    path = path_of("definitions", "graph")
    return send(DefinitionGraph, "POST", path, {"definition": definition}, repeatable=True)


def test_definition(definition: str, tests: str) -> Conversation[DefinitionTests]:
    """Run the tests in a flow test file for a definition, on the server; raises BadRequest if it has errors."""
    path = path_of("definitions", "test")
    return send(DefinitionTests, "POST", path, {"definition": definition, "tests": tests}, repeatable=True)
