"""Where a step is named: by itself, by gotos of its list, and in flow test files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flowserver.base.names import is_name
from flowserver.base.step_paths import agree, is_path, without_numbers
from flowserver.editing.condition_mentions import Condition, has_bare_key, is_condition, named_in, written_anew
from flowserver.editing.edits import Edit, replaced
from flowserver.editing.files import Definition, EditedFile, FlowTest, Surroundings
from flowserver.editing.grammar import Keys
from flowserver.editing.outline import Outline, StepEntry
from flowserver.editing.texts import Extent
from flowserver.editing.tree import Spot
from flowserver.flowtests.fields import KEYED_BY_STEPS, LISTS_OF_STEPS, UNDO
from flowserver.language.diagnostics import shown
from flowserver.language.nodes import MapNode, ScalarNode

_OF_OWN_FLOW: Final = ("path", "pathIncludes")
_LAST_NUMBER: Final = re.compile(r"\[[0-9]*\]\Z")


class CannotRename(Exception):
    """The step cannot have that name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A part of a file; `file` is None for the file that is asked about."""

    file: Path | None
    extent: Extent


@dataclass(frozen=True, slots=True)
class Mention:
    """A step's name or path in a flow test."""

    text: str
    extent: Extent
    attribute: str
    condition: Condition | None = None
    """The condition that it is in."""


def step_at(file: Definition, offset: int) -> StepEntry | None:
    """The step whose name is at an offset, or that a goto there leads to."""
    node = _scalar_at(file, offset)
    if node is None:
        return None
    if step := file.outline.by_name_node(node):
        return step
    holder = file.outline.by_goto(node)
    return None if holder is None else holder.within.named(node.text)


def _scalar_at(file: EditedFile, offset: int) -> ScalarNode | None:
    found = file.at(offset)
    return found.spot.node if found and found.key is None and isinstance(found.spot.node, ScalarNode) else None


def name_extent(file: Definition, step: StepEntry) -> Extent:
    """Where a step's name is written; without a name, its begin."""
    if step.name_node is not None:
        return file.extent(step.name_node)
    start = file.extent(step.node).start
    return Extent(start, start)


def mentions(test: FlowTest) -> list[Mention]:
    """Every name and path of a step in a flow test, in order, once each: an alias repeats its place."""
    found = {mention.extent: mention for mention in _mentions(test)}
    return [found[extent] for extent in sorted(found)]


def _mentions(test: FlowTest) -> Iterator[Mention]:
    readable = test.readable
    if readable is None or readable.tree is None:
        return
    for spot in readable.tree.spots():
        if isinstance(spot.node, ScalarNode) and names_a_step(spot):
            yield Mention(spot.node.text, test.extent(spot.node), spot.attribute)
        if isinstance(spot.node, ScalarNode) and is_condition(spot):
            for condition, place in named_in(spot.node, readable.text.extent_of(spot.node.span), readable.text.text):
                extent = test.moved_extent(place)
                yield Mention(condition.named.text, extent, condition.named.fact, condition)
        if isinstance(spot.kind, Keys) and spot.kind.attribute in KEYED_BY_STEPS and isinstance(spot.node, MapNode):
            for entry in spot.node.entries:
                yield Mention(entry.name, test.moved(entry.key_span), spot.kind.attribute)


def names_a_step(spot: Spot) -> bool:
    """Whether a value is the name or the path of a step: in a list of such, or what undoes another step."""
    around = None if spot.around is None else spot.around.kind
    if spot.in_list and spot.attribute in LISTS_OF_STEPS:
        return True
    return (around is UNDO and spot.attribute == "by") or around == Keys("compensated")


def meant_by(mention: Mention, outline: Outline) -> StepEntry | None:
    """The step that a mention means, by name the first."""
    if is_path(mention.text) or mention.attribute in _OF_OWN_FLOW:
        some = outline.by_path.get(without_numbers(mention.text), ())
        return next((step for step in some if agree(mention.text, step.path)), None)
    return next(iter(outline.by_name.get(mention.text, ())), None)


def mention_at(test: FlowTest, offset: int) -> Mention | None:
    """The mention at an offset."""
    return next((each for each in mentions(test) if each.extent.holds(offset)), None)


def definitions_of(test: FlowTest, path: Path, others: Surroundings) -> Iterator[tuple[Path, Definition]]:
    """The definitions that a flow test runs, its own first."""
    for name in (test.flow, *sorted(test.definitions - {test.flow})):
        definition = others.definition(path.parent / name) if name else None
        if definition is not None:
            yield path.parent / name, definition


def step_of_mention(
    mention: Mention, test: FlowTest, path: Path, others: Surroundings
) -> tuple[Path, Definition, StepEntry] | None:
    """The step that a mention means, with its definition."""
    for file, definition in definitions_of(test, path, others):
        if step := meant_by(mention, definition.outline):
            return file, definition, step
    return None


# References and renaming


def references(file: Definition, step: StepEntry, path: Path | None, others: Surroundings) -> Iterator[Place]:
    """Every place that names a step, itself first."""
    for extent in _in_definition(file, step):
        yield Place(None, extent)
    for test_path, edit in _in_tests(file, step, step.name, path, others):
        yield Place(test_path, edit.extent)


def _in_definition(file: Definition, step: StepEntry) -> Iterator[Extent]:
    own = None if step.name_node is None else file.extent(step.name_node)
    if own is not None:
        yield own
    seen = {own}
    for other in step.within.steps:
        for goto in other.gotos:
            if goto.text == step.name and (extent := file.extent(goto)) not in seen:  # an alias repeats its place
                seen.add(extent)
                yield extent


def check_new_name(step: StepEntry, new: str) -> None:
    """Raises CannotRename for a name that the step cannot have."""
    if not is_name(new):
        rule = "1-128 letters, digits, `_` or `-`, beginning with a letter or `_`"
        raise CannotRename(f"{shown(new)} is not a step name: {rule}")
    if any(other is not step and other.name == new for other in step.within.steps):
        raise CannotRename(f"{shown(new)} is a step of this list already")


def renamed(
    file: Definition, step: StepEntry, new: str, path: Path | None, others: Surroundings
) -> Iterator[tuple[Path | None, Edit]]:
    """The changes that give a step another name, by file; raises CannotRename."""
    if file.readable is not file:
        raise CannotRename("the text is not YAML at present, so a change could go to a wrong place")
    check_new_name(step, new)
    for extent in _in_definition(file, step):
        yield None, replaced(file.text.text, extent, step.name, step.name, new)
    yield from _in_tests(file, step, new, path, others)


def _in_tests(
    file: Definition, step: StepEntry, new: str, path: Path | None, others: Surroundings
) -> Iterator[tuple[Path, Edit]]:
    for test_path, test in others.flow_tests_of(path) if path is not None else ():
        own = next(definitions_of(test, test_path, others), None)
        is_own = own is not None and own[1] is file
        found: dict[Extent, list[tuple[Mention, int]]] = {}
        for mention in mentions(test):
            if not is_own and (own is None or _is_of(mention, own[1].outline)):
                continue
            at = _where_named(mention, step, file.outline)
            if at is not None:
                whole = mention.extent if mention.condition is None else mention.condition.extent
                found.setdefault(whole, []).append((mention, at))
        for of_value in found.values():
            yield from ((test_path, edit) for edit in _edits_of_value(test, of_value, step.name, new))


def _edits_of_value(test: FlowTest, found: list[tuple[Mention, int]], old: str, new: str) -> Iterator[Edit]:
    text = test.text.text
    in_condition = [(mention.condition, at) for mention, at in found if mention.condition is not None]
    if "-" in new and has_bare_key(condition for condition, _ in in_condition):
        yield written_anew(in_condition, old, new, text)
        return
    for mention, at in found:
        if mention.condition is None:
            yield replaced(text, mention.extent, mention.text, old, new, at)
        else:
            start = mention.extent.start + at
            yield Edit(Extent(start, start + len(old)), new)


def _is_of(mention: Mention, outline: Outline) -> bool:
    return mention.attribute in _OF_OWN_FLOW or meant_by(mention, outline) is not None


def _where_named(mention: Mention, step: StepEntry, outline: Outline) -> int | None:
    """Where in a mention the step's name begins; None if it is another's.

    A bare name that two steps have is left alone: after the change it still means the other one.
    """
    if not is_path(mention.text) and mention.attribute not in _OF_OWN_FLOW:
        is_only_one = len(outline.by_name[step.name]) == 1
        return 0 if mention.text == step.name and is_only_one else None
    begin = 0
    parts = mention.text.split(".")
    for number, part in enumerate(parts):
        path = ".".join(parts[: number + 1])
        if agree(_LAST_NUMBER.sub("", path), step.path):
            return begin
        begin += len(part) + 1
    return None
