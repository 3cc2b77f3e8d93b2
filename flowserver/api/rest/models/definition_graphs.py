"""Definitions as graphs: what a program needs to draw a flow."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.flows import DEFINITION, GivenDefinition
from flowserver.api.rest.models.shared_types import Instant, RequestBody, Resource, with_examples
from flowserver.base.json_values import Json, JsonObject
from flowserver.language.picture import Call, CallKind, Edge, GraphEdgeKind, ListKind, Loop, Node, Pause, Picture, Steps

_NODE: JsonObject = {
    "id": 0,
    "path": "pack",
    "name": "pack",
    "type": "foreach",
    "title": "$.items",
    "line": 4,
    "endLine": 12,
    "list": 0,
    "parent": None,
    "call": None,
    "wait": None,
    "foreach": {"source": "$.items", "item": "item", "index": None},
}
_CALL: JsonObject = {
    "kind": "function",
    "name": "shop/label",
    "pattern": "requestResponse",
    "flow": None,
    "retries": 3,
    "timeoutSeconds": None,
}
_LABEL: JsonObject = _NODE | {
    "id": 1,
    "path": "pack[].label",
    "name": "label",
    "type": "task",
    "title": "shop/label",
    "line": 8,
    "list": 1,
    "parent": 0,
    "call": _CALL,
    "foreach": None,
}
_LIST: JsonObject = {"id": 0, "kind": "root", "parent": None, "index": None, "nodes": [0]}
_INNER: JsonObject = {"id": 1, "kind": "iteration", "parent": 0, "index": None, "nodes": [1]}
_EDGE: JsonObject = {"from": 0, "to": 1, "kind": "iteration", "label": None, "index": None}
_NEXT: JsonObject = {"from": 0, "to": None, "kind": "next", "label": None, "index": None}


class DrawDefinition(RequestBody):
    """A definition to describe as a graph."""

    model_config = with_examples({"definition": DEFINITION})

    definition: GivenDefinition


class GraphCall(Resource):
    """What a task calls."""

    model_config = with_examples(_CALL)

    kind: CallKind
    name: Annotated[str, Field(description="`shop/pay`, `charge`, `orders`, `fnf:StartExecution`.")]
    pattern: str
    flow: Annotated[str | None, Field(description="The flow that it starts, if the definition names it.")]
    retries: Annotated[int, Field(description="The most retries that one of its retry policies allows.")]
    timeout_seconds: int | None

    @classmethod
    def of(cls, call: Call) -> Self:
        """The call as the API shows it."""
        return cls(
            kind=call.kind,
            name=call.name,
            pattern=call.pattern,
            flow=call.flow,
            retries=call.retries,
            timeout_seconds=call.timeout_seconds,
        )


class GraphWait(Resource):
    """How long a wait step waits; exactly one is not null."""

    seconds: int | None
    until: Instant | None
    path: Annotated[str | None, Field(description="Selects the seconds or the instant from the step's input.")]

    @classmethod
    def of(cls, wait: Pause) -> Self:
        """The wait as the API shows it."""
        return cls(seconds=wait.seconds, until=wait.until, path=wait.path)


class GraphLoop(Resource):
    """What a foreach step iterates over: its `iterationMapping`."""

    source: Annotated[str, Field(description="The path of the collection.")]
    item: str
    index: str | None

    @classmethod
    def of(cls, loop: Loop) -> Self:
        """The loop as the API shows it."""
        return cls(source=loop.source, item=loop.item, index=loop.index)


class GraphNode(Resource):
    """One step."""

    model_config = with_examples(_NODE)

    id: Annotated[int, Field(description="Its number in document order, from 0.")]
    path: Annotated[
        str,
        Field(description="As in step summaries: `pack[].label`, `ship[1].book`. Steps of two options may share it."),
    ]
    name: str
    type: Annotated[
        str, Field(description="`task`, `wait`, `pass`, `choice`, `parallel`, `foreach`, `succeed`, `fail`.")
    ]
    title: Annotated[
        str | None,
        Field(description="In a few words what it calls, waits for or iterates over; of a fail step its error."),
    ]
    line: Annotated[int, Field(description="Its first line, from 1.")]
    end_line: Annotated[int, Field(description="Its last line.")]
    list: Annotated[int, Field(description="The list that it is in.")]
    parent: Annotated[int | None, Field(description="The step that holds the list; null in the flow's own list.")]
    call: Annotated[GraphCall | None, Field(description="Null unless it is a task.")]
    wait: Annotated[GraphWait | None, Field(description="Null unless it is a wait.")]
    foreach: Annotated[GraphLoop | None, Field(description="Null unless it is a foreach.")]

    @classmethod
    def of(cls, node: Node) -> Self:
        """The step as the API shows it."""
        return cls(
            id=node.id,
            path=node.path,
            name=node.name,
            type=node.type,
            title=node.title,
            line=node.line,
            end_line=node.end_line,
            list=node.list,
            parent=node.parent,
            call=node.call and GraphCall.of(node.call),
            wait=node.wait and GraphWait.of(node.wait),
            foreach=node.foreach and GraphLoop.of(node.foreach),
        )


class GraphList(Resource):
    """One list of steps, which run one after the other."""

    model_config = with_examples(_LIST)

    id: Annotated[int, Field(description="Its number in document order; 0 is the flow's own.")]
    kind: ListKind
    parent: Annotated[int | None, Field(description="The step that holds it.")]
    index: Annotated[int | None, Field(description="Which branch or option it is, from 0.")]
    nodes: Annotated[list[int], Field(description="Its steps in order.")]

    @classmethod
    def of(cls, steps: Steps) -> Self:
        """The list as the API shows it."""
        return cls(id=steps.id, kind=steps.kind, parent=steps.parent, index=steps.index, nodes=list(steps.nodes))


class GraphEdge(Resource):
    """One way that control can take."""

    model_config = with_examples(_EDGE)

    source: Annotated[int, Field(alias="from", description="The step that it leaves.")]
    target: Annotated[int | None, Field(alias="to", description="The step that follows; null: its list ends.")]
    kind: Annotated[
        GraphEdgeKind,
        Field(
            description="`option`, `default`: to the first step of an option, or at once to where it leads. `goto`: "
            "from a choice, after the steps of an option. `next`: after the step. `end`: the step ends its list."
        ),
    ]
    label: Annotated[str | None, Field(description="The condition of an option, or the errors of a catch.")]
    index: Annotated[
        int | None, Field(description="Which branch, option or catch rule, from 0; null of a choice's default.")
    ]

    @classmethod
    def of(cls, edge: Edge) -> Self:
        """The edge as the API shows it."""
        return cls(source=edge.source, target=edge.target, kind=edge.kind, label=edge.label, index=edge.index)


class DefinitionGraph(Resource):
    """A definition as a graph."""

    model_config = with_examples(
        {"nodes": [_NODE, _LABEL], "lists": [_LIST, _INNER], "edges": [_EDGE, _NEXT, _NEXT | {"from": 1}]}
    )

    nodes: list[GraphNode]
    lists: list[GraphList]
    edges: list[GraphEdge]

    @staticmethod
    def parts_of(picture: Picture) -> dict[str, Json | Iterator[Json]]:
        """The fields, element by element, because there may be thousands."""
        return {
            "nodes": (GraphNode.of(each).model_dump() for each in picture.nodes),
            "lists": (GraphList.of(each).model_dump() for each in picture.lists),
            "edges": (GraphEdge.of(each).model_dump() for each in picture.edges),
        }
