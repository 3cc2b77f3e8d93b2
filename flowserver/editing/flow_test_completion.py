"""What can be written at a place of a flow test file: its attributes, and the steps and resources of its flow."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from flowserver.analysis.errors_and_retries import SERVER_ERRORS
from flowserver.editing.call_targets import target_of
from flowserver.editing.completion import as_written, attributes_of, layout_at, words_of
from flowserver.editing.completion_items import Item, ItemKind, Layout, name_with_value, word
from flowserver.editing.cursor import MARK, Cursor
from flowserver.editing.files import FlowTest, Surroundings
from flowserver.editing.grammar import Keys, attribute_of, field_of, text_of
from flowserver.editing.outline import Outline, StepEntry
from flowserver.editing.step_names import names_a_step
from flowserver.editing.texts import Extent
from flowserver.flowtests.resource_names import title_of
from flowserver.language.fields import ObjectKind
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    Target,
    TopicTarget,
)
from flowserver.language.nodes import MapNode

_TARGETS: Final[dict[str, tuple[type, ...]]] = {
    "functions": (FunctionTarget, ActionTarget),
    "flows": (FlowTarget,),
    "queues": (QueueTarget,),
    "topics": (TopicTarget,),
    "calls": (FunctionTarget, ActionTarget, FlowTarget, QueueTarget, TopicTarget),
}
_OF_STEPS: Final[dict[str, Callable[[StepEntry], bool]]] = {
    "steps": lambda step: step.type == "task",
    "callbacks": lambda step: text_of(attribute_of(step.node, "pattern")) == Pattern.WAIT_FOR_CALLBACK,
    "calls": lambda step: step.type == "task",
    "compensated": lambda _: True,
}


def flow_test_completions(
    file: FlowTest, cursor: Cursor, path: Path | None, others: Surroundings
) -> tuple[Extent, list[Item]]:
    """What can be put in the place of an extent of the text."""
    flow = text_of(attribute_of(cursor.tree.root, "flow"))
    definition = others.definition(path.parent / flow) if path is not None and flow else None
    outline = Outline(None) if definition is None else definition.outline
    if cursor.key is not None:
        return cursor.extent, [*_keys(file, cursor, outline)]
    return cursor.extent, as_written([*_values(cursor, outline)], cursor, file.text.text)


def _keys(file: FlowTest, cursor: Cursor, outline: Outline) -> Iterator[Item]:
    layout = layout_at(cursor, file.text.text)
    kind = cursor.spot.kind
    if isinstance(kind, ObjectKind):
        yield from attributes_of(cursor.spot, layout)
    elif isinstance(kind, Keys):
        yield from _names(kind.attribute, cursor, outline, layout)


def _names(attribute: str, cursor: Cursor, outline: Outline, layout: Layout) -> Iterator[Item]:
    """Names of steps and resources that have no entry yet."""
    node = cursor.spot.node
    written = {entry.name for entry in node.entries if MARK not in entry.name} if isinstance(node, MapNode) else set()
    for step in outline.steps():
        is_fit = _OF_STEPS.get(attribute)
        if is_fit is not None and step.name and step.name not in written and is_fit(step):
            yield name_with_value(step.name, ItemKind.STEP, f"{step.type} step", "", layout)
    targets = [target for step in outline.steps() if (target := target_of(step.node)) is not None]
    for name in dict.fromkeys(_name_of(each) for each in targets if isinstance(each, _TARGETS.get(attribute, ()))):
        if name not in written:
            yield name_with_value(name, ItemKind.RESOURCE, "called by the flow", "", layout)


def _name_of(target: Target) -> str:
    """The shortest name that a flow test can have for a resource."""
    return title_of(target).rpartition("/")[2]


def _values(cursor: Cursor, outline: Outline) -> Iterator[Item]:
    spot = cursor.spot
    around = spot.around.kind if spot.around is not None else None
    if names_a_step(spot):
        names = (step.path for step in outline.steps() if step.name)
        yield from (word(name, ItemKind.STEP) for name in dict.fromkeys(names))
    elif spot.attribute in ("error", "fail"):
        yield from (word(name, detail="the server's") for name in SERVER_ERRORS)
    elif (field := field_of(around, spot.attribute)) is not None:
        yield from words_of(field)
