"""Ways through a list of steps: the shortest on which a key is not put out, and the loops."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from flowserver.analysis.constants import Ways, ways_through
from flowserver.analysis.data_flow import ListFacts
from flowserver.analysis.rules import PathStep
from flowserver.analysis.shapes import Document, Presence, look_up
from flowserver.analysis.subject import Subject
from flowserver.language.arrows import LEAVE, Arrow, Way, arrows_from, options_of
from flowserver.language.graph import ChoiceStep, ForeachStep, StepList, TaskStep

_ENDS_SHOWN: Final = 15
"""Steps at the begin and at the end of a way that a finding shows; there may be a thousand, and as many findings."""


def way_without(subject: Subject, steps: StepList, index: int, key: str) -> tuple[PathStep, ...] | None:
    """The shortest way from the list's begin to a step on which nothing puts out the key; None if there is none."""
    facts = subject.facts_of(steps)
    if facts is None:
        return None
    path = _searched_without(subject, steps, facts, key).to(index)
    if path is None:
        return None
    last = subject.path_step(steps.steps[index], f"reads `{key}`, which no step on this way puts out")
    return (*_shown(subject, steps, path), last)


def _searched_without(subject: Subject, steps: StepList, facts: ListFacts, key: str) -> Ways:
    """The shortest ways from the list's begin on which nothing puts out the key. Searched once for all steps."""
    if (steps.list_id, key) not in subject.searched:
        found = ways_through(steps, facts, lambda output: not _may_set(output, key))
        subject.work.spend(1 + len(found.came) // _UNIT_STEPS)
        subject.searched[steps.list_id, key] = found
    return subject.searched[steps.list_id, key]


def _shown(subject: Subject, steps: StepList, path: list[Arrow]) -> Iterator[PathStep]:
    """The steps of a way; of a long one its begin and its end."""
    left_out = max(len(path) - 2 * _ENDS_SHOWN, 0)
    for number, arrow in enumerate(path):
        note = _note(steps, arrow)
        if left_out and number == _ENDS_SHOWN - 1:
            note += f"; {left_out} more steps follow"
        if not left_out or number < _ENDS_SHOWN or number >= _ENDS_SHOWN + left_out:
            yield subject.path_step(steps.steps[arrow.start], note)


def way_without_in_input(subject: Subject, steps: StepList, key: str) -> tuple[PathStep, ...] | None:
    """A way to the step that holds the list on which its input has no such key; None if there is none."""
    owner = subject.owners.get(steps.list_id)
    if owner is None:
        return None
    around = subject.flow.lists[owner.list_id]
    step = around.steps[owner.index]
    facts = subject.facts_of(around)
    if facts is None or owner.index not in facts.steps or step.input_mappings is not None:
        return None
    if isinstance(step, ForeachStep) and key in (step.item, step.index):
        return None
    return way_without_in_both(subject, around, owner.index, key)


def way_without_in_both(subject: Subject, steps: StepList, index: int, key: str) -> tuple[PathStep, ...] | None:
    """A way to a step without inputMappings on which its input has no such key; None if there is none."""
    facts = subject.facts_of(steps)
    if facts is None:
        return None
    presence, _ = look_up(facts.input, (key,))
    if presence is Presence.NEVER:
        return way_without(subject, steps, index, key)
    if presence is Presence.SOMETIMES:
        before, here = way_without_in_input(subject, steps, key), way_without(subject, steps, index, key)
        return None if before is None or here is None else (*before[:-1], *here)
    return None


def _may_set(output: Document, key: str) -> bool:
    return output.is_open or key in output.parts


def _note(steps: StepList, arrow: Arrow) -> str:
    step = steps.steps[arrow.start]
    if arrow.way is Way.CAUGHT and isinstance(step, TaskStep):
        return f"fails with {', '.join(sorted(step.catch[arrow.number].errors))}, which is caught"
    if arrow.way is Way.OPTION and isinstance(step, ChoiceStep):
        option = options_of(step)[arrow.number]
        return "takes its default" if option.condition is None else f"takes the option `{option.condition.text}`"
    return "is done"


_UNIT_STEPS: Final = 10
"""Steps that a search goes through in one unit of work."""


def reached(subject: Subject, steps: StepList, starts: Collection[int], follows: Callable[[Arrow], bool]) -> set[int]:
    """The positions to which ways lead from some positions, with those themselves; `follows` chooses the arrows."""
    arrows = subject.arrows_of(steps)
    todo = [start for start in starts if start != LEAVE]
    found = set(todo)
    for index in todo:
        for arrow in arrows[index]:
            if follows(arrow) and arrow.end != LEAVE and arrow.end not in found:
                found.add(arrow.end)
                todo.append(arrow.end)
    subject.work.spend(1 + len(found) // _UNIT_STEPS)
    return found


def loops_of(steps: StepList, left_out: Collection[int] = ()) -> list[list[int]]:
    """The positions of each group of steps that lead to one another, but for some positions."""
    ends = {
        index: [arrow.end for arrow in arrows_from(steps, index) if arrow.end not in (LEAVE, *left_out)]
        for index in range(len(steps.steps))
        if index not in left_out
    }
    return [sorted(group) for group in _groups(ends) if len(group) > 1 or group[0] in ends[group[0]]]


def _groups(ends: dict[int, list[int]]) -> list[list[int]]:
    """The strongly connected components, by Tarjan's algorithm on an explicit stack."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    on_stack: list[int] = []
    is_on_stack: set[int] = set()
    groups: list[list[int]] = []
    for root, first in ends.items():
        if root in number:
            continue
        work = [(root, iter(first))]
        number[root] = low[root] = len(number)
        on_stack.append(root)
        is_on_stack.add(root)
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    cut = on_stack.index(node)
                    groups.append(on_stack[cut:])
                    is_on_stack.difference_update(on_stack[cut:])
                    del on_stack[cut:]
            elif child not in number:
                number[child] = low[child] = len(number)
                on_stack.append(child)
                is_on_stack.add(child)
                work.append((child, iter(ends[child])))
            elif child in is_on_stack:
                low[node] = min(low[node], number[child])
    return groups
