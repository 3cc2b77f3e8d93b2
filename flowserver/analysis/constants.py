"""Ways through a list of steps that constants allow.

After a step that puts out `failed: true`, no execution takes an option with `$.failed == false`. Without that, a search
for a way that shows a mistake finds ways that no execution goes. Only the keys that choices of the list read are
followed, and each only while a constant, or nothing, is in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from flowserver.analysis.data_flow import ListFacts
from flowserver.analysis.shapes import Document, Presence, look_up
from flowserver.base.json_values import Json, JsonObject, dump_json, load_json
from flowserver.expressions.condition_nodes import And, Node, Not, Or
from flowserver.expressions.conditions import Condition, holds, paths_in
from flowserver.expressions.references import Constant, Reference, Root
from flowserver.language.arrows import LEAVE, Arrow, Way
from flowserver.language.graph import ChoiceStep, Mapping, Mappings, Step, StepList, TaskStep

Known = frozenset[tuple[str, str | None]]
"""What is in the keys of `$local` that are followed: a constant as JSON, or None for what is not known. A key that is
not here is not in `$local`.
"""

Place = tuple[int, Known]

_PLACES_OF_A_STEP: Final = 4
"""For each step of a list so many combinations of constants are followed, on the average; with more, none."""


@dataclass(frozen=True, slots=True)
class Ways:
    """The shortest ways from the begin of a list to its positions."""

    came: dict[Place, tuple[Place, Arrow] | None]
    first: dict[int, Place]
    """The place at which each position is reached first."""

    def to(self, position: int) -> list[Arrow] | None:
        """The way to a position; None if there is none."""
        if position not in self.first:
            return None
        path: list[Arrow] = []
        last = self.came[self.first[position]]
        while last is not None:
            place, arrow = last
            path.append(arrow)
            last = self.came[place]
        return path[::-1]


def ways_through(steps: StepList, facts: ListFacts, may_go: Callable[[Document], bool]) -> Ways:
    """The ways on which each step puts out what `may_go` allows."""
    keys = frozenset(_with_sources(steps, set(_keys_read(steps))))
    found = _searched(steps, facts, may_go, keys)
    return found or _searched(steps, facts, may_go, frozenset()) or Ways({}, {})


def _searched(
    steps: StepList, facts: ListFacts, may_go: Callable[[Document], bool], keys: frozenset[str]
) -> Ways | None:
    """None if there are too many combinations of constants."""
    begin: Place = (0, frozenset())
    found = Ways({begin: None}, {0: begin})
    todo = [begin]
    for place in todo:
        position, known = place
        step_facts = facts.steps.get(position)
        for arrow, output in () if step_facts is None else step_facts.outputs.items():
            if arrow.end == LEAVE or not may_go(output) or not _can_be_taken(steps, facts, arrow, known, keys):
                continue
            after = (arrow.end, _after(steps, arrow, output, known, keys))
            if after not in found.came:
                found.came[after] = (place, arrow)
                found.first.setdefault(arrow.end, after)
                todo.append(after)
        if len(todo) > _PLACES_OF_A_STEP * (len(steps.steps) + 10):
            return None
    return found


def _keys_read(steps: StepList) -> Iterator[str]:
    """The keys of `$local` that decide in conditions."""
    for step in steps.steps:
        if isinstance(step, ChoiceStep) and step.input_mappings is not None:
            yield from (key for key in map(_local_key, step.input_mappings) if key is not None)
        elif isinstance(step, ChoiceStep):
            for option in step.options:
                for path in () if option.condition is None else paths_in(option.condition):
                    if path.segments and isinstance(path.segments[0], str):
                        yield path.segments[0]


def _with_sources(steps: StepList, keys: set[str]) -> set[str]:
    """Some keys of `$local`, and those from which steps copy their values."""
    copied: dict[str, set[str]] = {}
    for step in steps.steps:
        errors = step.error_mappings if isinstance(step, TaskStep) else None
        for mapping in (*(step.output_mappings or ()), *(errors or ())):
            source = _copied_key(step, mapping)
            if source is not None:
                copied.setdefault(mapping.target, set()).add(source)
    todo = list(keys)
    for key in todo:
        new = copied.get(key, set()) - keys
        keys |= new
        todo.extend(new)
    return keys


def _copied_key(step: Step, mapping: Mapping) -> str | None:
    """The key of `$local` whose value a step puts out as it is, through its input."""
    source = mapping.source
    if not isinstance(source, Reference) or source.root is not Root.INPUT or len(source.path.segments) != 1:
        return None
    key = source.path.segments[0]
    if not isinstance(key, str) or step.input_mappings is None:
        return key if isinstance(key, str) else None
    entry = next((each for each in reversed(step.input_mappings) if each.target == key), None)
    return None if entry is None else _local_key(entry)


def _local_key(mapping: Mapping) -> str | None:
    """The key, if a mapping takes a key of `$local` as it is."""
    source = mapping.source
    if isinstance(source, Reference) and source.root is Root.LOCAL and len(source.path.segments) == 1:
        key = source.path.segments[0]
        return key if isinstance(key, str) else None
    return None


def _after(steps: StepList, arrow: Arrow, output: Document, known: Known, keys: frozenset[str]) -> Known:
    """What is known when a step has put out its data."""
    if output.is_open:
        return frozenset((key, None) for key in keys)
    written = keys & output.parts.keys()
    if not written:
        return known
    before = dict(known)
    constants = {
        each.target: dump_json(each.source.value)
        if isinstance(each.source, Constant)
        else before.get(_copied_key(steps.steps[arrow.start], each) or "")
        for each in _mappings_of(steps, arrow)
    }
    kept = (each for each in known if each[0] not in written)
    return frozenset((*kept, *((key, constants.get(key)) for key in written)))


def _mappings_of(steps: StepList, arrow: Arrow) -> Mappings:
    step = steps.steps[arrow.start]
    if arrow.way is Way.CAUGHT:
        return (step.error_mappings or ()) if isinstance(step, TaskStep) else ()
    return step.output_mappings or ()


def _can_be_taken(steps: StepList, facts: ListFacts, arrow: Arrow, known: Known, keys: frozenset[str]) -> bool:
    """Whether the constants leave a choice this option."""
    step = steps.steps[arrow.start]
    if not isinstance(step, ChoiceStep) or not keys:
        return True
    given, unknown = _input_of(step, facts, dict(known))
    for number, option in enumerate(step.options[: arrow.number + 1]):
        if option.condition is not None:
            is_earlier = number < arrow.number
            if _truth(option.condition.tree, given, unknown) is is_earlier:
                return False
    return True


def _input_of(
    step: ChoiceStep, facts: ListFacts, known: dict[str, str | None]
) -> tuple[JsonObject, Callable[[str], bool]]:
    """What is surely in the input of a choice, and a test for keys of which nothing is known."""
    if step.input_mappings is None:
        given = {key: load_json(text) for key, text in known.items() if text is not None}

        def unknown(key: str) -> bool:
            if key in known:
                return known[key] is None
            return look_up(facts.input, (key,))[0] is not Presence.NEVER

        return given, unknown
    mapped: JsonObject = {}
    open_keys: set[str] = set()
    for mapping in step.input_mappings:
        key = _local_key(mapping)
        open_keys.discard(mapping.target)
        if isinstance(mapping.source, Constant):
            mapped[mapping.target] = mapping.source.value
        elif key is not None and known.get(key, "null") is not None:
            mapped[mapping.target] = load_json(known.get(key, "null") or "null")
        else:
            open_keys.add(mapping.target)
    return mapped, open_keys.__contains__


def _truth(node: Node, given: Json, unknown: Callable[[str], bool]) -> bool | None:
    """Whether a condition holds; None if that is not known."""
    match node:
        case Not(operand):
            inner = _truth(operand, given, unknown)
            return None if inner is None else not inner
        case And(operands) | Or(operands):
            decides = isinstance(node, Or)
            truths = [_truth(operand, given, unknown) for operand in operands]
            return decides if decides in truths else None if None in truths else not decides
    condition = Condition("", node)
    for path in paths_in(condition):
        key = path.segments[0] if path.segments else None
        if not isinstance(key, str) or unknown(key):
            return None
    return holds(condition, given)
