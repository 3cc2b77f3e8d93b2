"""What can be written at a place of a definition."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from flowserver.analysis.data_flow import TASK_CONTEXT
from flowserver.analysis.errors_and_retries import SERVER_ERRORS
from flowserver.analysis.shapes import Document, Shape
from flowserver.editing.call_targets import parameters_of
from flowserver.editing.completion_items import (
    Item,
    ItemKind,
    Layout,
    attribute,
    in_quotes,
    name_with_value,
    whole_step,
    word,
)
from flowserver.editing.cursor import MARK, Cursor
from flowserver.editing.facts import kind_in_words
from flowserver.editing.files import Definition
from flowserver.editing.grammar import ANY_STEP, Keys, field_of, is_step
from flowserver.editing.references import is_by_path, list_around, roots_of
from flowserver.editing.texts import Extent
from flowserver.editing.tree import Spot
from flowserver.expressions.references import Root
from flowserver.language.fields import FLOW, STEPS, Field, ObjectKind
from flowserver.language.fields import Shape as FieldShape
from flowserver.language.nodes import MapNode, ScalarNode
from flowserver.language.resources import FLOW_FORM, FUNCTION_FORM, QUEUE_FORM, START_EXECUTION, TOPIC_FORM

DEPTH_MAX: Final = 3
"""Levels of data that references are offered for."""

REFERENCES_MAX: Final = 200
NEW_FLOW: Final = Item(
    "new flow",
    ItemKind.TEMPLATE,
    "version: v1\ntype: flow\nsteps:\n  - type: $1\n    name: $2",
    "template",
    "A flow with one step.",
    is_snippet=True,
)

_JSON: Final = re.compile(r'\ufeff?\s*\{\s*"')
"""How a text begins that is taken for JSON."""

_JSON_WORDS: Final = frozenset({"true", "false"})
_WHOLE_VALUES: Final = frozenset({"resourceArn", "action"})


Meanings = Mapping[str, str]
"""When errors come up, by their names."""

NO_MEANINGS: Final[Meanings] = MappingProxyType({})


def completions(file: Definition, cursor: Cursor, errors: Meanings = NO_MEANINGS) -> tuple[Extent, list[Item]]:
    """What can be put in the place of an extent of the text."""
    extent = cursor.extent
    if cursor.key is not None:
        return extent, [*keys_of(cursor, file)]
    if cursor.spot.attribute in _WHOLE_VALUES:
        extent = Extent(min(extent.start, cursor.tree.extent(cursor.spot.node).start), extent.end)
    return extent, as_written([*_values(file, cursor, errors)], cursor, file.text.text)


def as_written(values: list[Item], cursor: Cursor, text: str) -> list[Item]:
    """The values with the quotes that they need at the cursor."""
    if cursor.is_quoted or _JSON.match(text) is None:
        return values
    return [item if item.insert in _JSON_WORDS else in_quotes(item) for item in values]


# Keys


def keys_of(cursor: Cursor, file: Definition) -> Iterator[Item]:
    """Keys that the mapping at the cursor can have and does not have."""
    spot = cursor.spot
    layout = layout_at(cursor, file.text.text)
    if isinstance(spot.kind, Keys):
        yield from _parameters(spot, layout)
    if not isinstance(spot.kind, ObjectKind):
        return
    if spot.kind is FLOW and not layout.is_bare and not _others(spot):
        yield NEW_FLOW
    if spot.kind is ANY_STEP and not layout.is_bare and not _others(spot):
        for name, kind in STEPS.items():
            yield whole_step(name, kind, layout)
    yield from attributes_of(spot, layout)


def attributes_of(spot: Spot, layout: Layout) -> Iterator[Item]:
    """The attributes that the mapping does not have."""
    kind = spot.kind
    assert isinstance(kind, ObjectKind)
    written = _others(spot)
    for name, field in kind.fields.items():
        is_other = name in kind.exactly_one and not written.isdisjoint(kind.exactly_one)
        if name not in written and not is_other:
            yield attribute(field, layout)


def _others(spot: Spot) -> set[str]:
    """The keys of a mapping but for that at the cursor."""
    entries = spot.node.entries if isinstance(spot.node, MapNode) else ()
    return {entry.name for entry in entries if MARK not in entry.name}


def layout_at(cursor: Cursor, text: str) -> Layout:
    """How a key is written at the cursor."""
    spot, start = cursor.spot, cursor.extent.start
    line = text.rfind("\n", 0, start) + 1
    blanks = len(text[line:start]) - len(text[line:start].lstrip(" "))
    is_flow = cursor.tree.text.text[cursor.tree.extent(spot.node).start] == "{"
    is_bare = cursor.is_quoted or text[cursor.extent.end :].lstrip(" ").startswith(":")
    around = spot.around.kind if spot.around is not None else None
    holder = field_of(around, spot.attribute)
    is_list = holder is not None and holder.shapes == (FieldShape.LIST,)
    dash = "- " if is_list and not spot.in_list and not is_flow else ""
    return Layout(is_flow, is_bare, " " * (start - line - blanks), dash, _JSON.match(text) is not None)


def _parameters(spot: Spot, layout: Layout) -> Iterator[Item]:
    task = spot.around.node if spot.around is not None else None
    written = _others(spot)
    for name, parameter in parameters_of(task).items() if isinstance(task, MapNode) else ():
        if name not in written:
            about = f"{name} {parameter.rule}." if parameter.rule else ""
            detail = "required" if parameter.is_required else "parameter"
            yield name_with_value(name, ItemKind.ATTRIBUTE, detail, about, layout)


# Values


def _values(file: Definition, cursor: Cursor, errors: Meanings) -> Iterator[Item]:
    spot = cursor.spot
    assert spot.around is not None
    around = spot.around.kind
    if isinstance(around, Keys):
        yield from _parameter_values(spot)
    field = field_of(around, spot.attribute)
    if spot.attribute == "type" and is_step(around):
        yield from (word(name, ItemKind.STEP, kind.title) for name, kind in STEPS.items())
    elif spot.attribute == "goto":
        yield from _siblings(cursor)
    elif spot.attribute == "errors":
        yield from errors_in(cursor, errors)
    elif spot.attribute == "source":
        yield from _references(file, cursor)
    elif spot.attribute in _WHOLE_VALUES:
        yield from _targets(cursor)
    elif field is not None:
        yield from words_of(field)
    if spot.attribute == "condition" or is_by_path(spot):
        yield from _paths(file, cursor)


def words_of(field: Field) -> Iterator[Item]:
    """The values of a closed list."""
    yield from (word(each) for each in field.words)
    if field.shapes == (FieldShape.BOOLEAN,):
        yield from (word("true"), word("false"))


def _parameter_values(spot: Spot) -> Iterator[Item]:
    task = spot.around.around.node if spot.around and spot.around.around else None
    parameter = parameters_of(task).get(spot.attribute) if isinstance(task, MapNode) else None
    yield from (word(each) for each in (parameter.words if parameter else ()))
    yield word("$", ItemKind.REFERENCE, "the step's input")


def _siblings(cursor: Cursor) -> Iterator[Item]:
    outline = cursor.outline
    holder = outline.by_goto(cursor.spot.node)
    for step in holder.within.steps if holder is not None else ():
        if step.name:
            yield word(step.name, ItemKind.STEP, f"{step.type} step")


def errors_in(cursor: Cursor, errors: Meanings) -> Iterator[Item]:
    """Names of errors: those of the server, and others in the text."""
    yield from (word(name, detail="the server's", documentation=errors.get(name, "")) for name in SERVER_ERRORS)
    written = {
        spot.node.text
        for spot in cursor.tree.spots()
        if spot.attribute in ("errors", "error", "fail") and isinstance(spot.node, ScalarNode)
    }
    for name in sorted(written.difference(SERVER_ERRORS)):
        if name and MARK not in name:
            yield word(name, detail="in this file")


def _targets(cursor: Cursor) -> Iterator[Item]:
    attribute_name = cursor.spot.attribute
    written = {
        spot.node.text: None
        for spot in cursor.tree.spots()
        if spot.attribute == attribute_name and isinstance(spot.node, ScalarNode)
    }
    for text in sorted(written):
        if MARK not in text:
            yield word(text, ItemKind.RESOURCE, "in this file")
    forms = (START_EXECUTION,) if attribute_name == "action" else (FUNCTION_FORM, FLOW_FORM, QUEUE_FORM, TOPIC_FORM)
    yield from (word(form, ItemKind.TEMPLATE, "form") for form in forms)


def _references(file: Definition, cursor: Cursor) -> Iterator[Item]:
    """References into `$input`, `$local` and `$context`, as far as they are known."""
    mapping_list = list_around(cursor.spot)
    step = _step_around(cursor)
    known = None if step is None else file.known.get(step)
    roots: dict[Root, Shape] = {Root.CONTEXT: TASK_CONTEXT} | ({} if known is None else roots_of(known, mapping_list))
    count = 0
    for root in Root:
        yield word(f"${root}", ItemKind.REFERENCE)
        for path, shape in _inside(roots.get(root), f"${root}", 1):
            count += 1
            if count <= REFERENCES_MAX:
                yield word(path, ItemKind.REFERENCE, kind_in_words(shape))


def _paths(file: Definition, cursor: Cursor) -> Iterator[Item]:
    """Paths into the step's input, as far as it is known."""
    step = _step_around(cursor)
    known = None if step is None else file.known.get(step)
    if known is None or known.facts is None:
        return
    for count, (path, shape) in enumerate(_inside(known.facts.input, "$", 1)):
        if count < REFERENCES_MAX:
            yield word(path, ItemKind.REFERENCE, kind_in_words(shape))


def _inside(shape: Shape | None, prefix: str, depth: int) -> Iterator[tuple[str, Shape]]:
    if not isinstance(shape, Document) or depth > DEPTH_MAX:
        return
    for key, part in shape.parts.items():
        path = f"{prefix}.{key}" if key.isidentifier() else f'{prefix}["{key}"]'
        yield path, part.shape
        yield from _inside(part.shape, path, depth + 1)


def _step_around(cursor: Cursor) -> str | None:
    """The path of the step that the cursor is in."""
    for spot in cursor.spot.ancestors():
        if is_step(spot.kind):
            step = cursor.outline.by_node(spot.node)
            return None if step is None else step.path
    return None
