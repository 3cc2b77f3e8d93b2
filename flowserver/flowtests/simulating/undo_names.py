"""Which steps undo the work of which others, by their names: `ReleaseReservation` undoes `Reserve`.

A pair is made only if the names leave no choice: two steps `BookHotel` and `BookFlight` make none with `CancelBooking`.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from typing import Final

from flowserver.analysis.compensation import names_undoing, undoes_by_name
from flowserver.flowtests.step_paths import walk
from flowserver.language.arrows import Way, arrows_from
from flowserver.language.graph import Flow, FunctionTarget, TaskStep

_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_ENDINGS: Final = ("ions", "ion", "ments", "ment", "ings", "ing", "als", "al", "es", "s", "e")
_STEM_MIN: Final = 3

_DELETES: Final = frozenset({"delete", "remove", "drop", "destroy"})
_CREATES: Final = frozenset({"create", "add", "insert", "make", "provision"})
_PAYS: Final = frozenset({"charge", "pay", "debit", "bill", "capture"})
_RESERVES: Final = frozenset({"reserve", "hold", "allocate", "lock", "acquire", "block"})
_BOOKS: Final = frozenset({"book", "reserve", "order", "subscribe", "schedule"})
_UNDONE_BY: Final = {"refund": _PAYS, "release": _RESERVES, "cancel": _BOOKS}
"""What a verb undoes by itself: `Refund` undoes `Charge`."""
_ONLY_LOOKS: Final = frozenset(
    {
        "calculate",
        "check",
        "compute",
        "confirm",
        "count",
        "describe",
        "estimate",
        "fetch",
        "find",
        "get",
        "inspect",
        "list",
        "load",
        "log",
        "lookup",
        "notify",
        "poll",
        "price",
        "print",
        "query",
        "quote",
        "read",
        "search",
        "select",
        "show",
        "tell",
        "test",
        "validate",
        "verify",
        "wait",
        "watch",
    }
)
"""Verbs of steps whose work nothing undoes: `CancelOrder` does not undo `CheckOrder`."""
_MONEY: Final = frozenset({"payment", "charge", "money", "card", "customer", "amount", "order"})
"""What a refund can be of without naming the step that it undoes."""
_DEEDS: Final = frozenset({"booking", "reservation", "order", "payment", "charge"})
"""Nouns for work that was done with a thing: `CancelHotelBooking` undoes `ReserveHotel`."""

_Paths = dict[tuple[str, ...], list[str]]


def undo_pairs(tasks: Mapping[str, TaskStep], caught: Set[str]) -> Iterator[tuple[str, str]]:
    """Paths of steps, each with that of the step that undoes its work.

    A step that deletes something counts only if it is among those to which a catch leads: flows delete for other
    reasons, too.
    """
    undoing = {path: _words(_undoing_name(step)) for path, step in tasks.items() if undoes_by_name(step)}
    deleting = {path: words for path in caught if path in tasks and (words := _words(tasks[path].name))[:1]}
    deleting = {path: words for path, words in deleting.items() if words[0] in _DELETES}
    doing = {
        path: words
        for path, step in tasks.items()
        if path not in undoing and path not in deleting and (words := _words(step.name)) and words[0] not in _ONLY_LOOKS
    }
    index = _Index(doing)
    for undo, (verb, *what) in undoing.items():
        yield from ((done, undo) for done in _undone_by(verb, what, index))
    for undo, (_, *what) in deleting.items():
        yield from ((done, undo) for done in index.by_object[*what] if what and doing[done][0] in _CREATES)


def undo_pairs_of(flow: Flow) -> Iterator[tuple[str, str]]:
    """The pairs of a flow. Steps in branches and loops are left out: which of their entries is meant is not known."""
    tasks = tasks_outside_of_lists(flow)
    return undo_pairs(tasks, caught_in(flow, tasks))


def tasks_outside_of_lists(flow: Flow) -> dict[str, TaskStep]:
    """The tasks that are in no branch and no iteration, by path."""
    return {path: step for path, step in walk(flow) if isinstance(step, TaskStep) and "[" not in path}


def caught_in(flow: Flow, tasks: Mapping[str, TaskStep]) -> Set[str]:
    """The paths of those tasks to which a catch leads."""
    goals = {
        id(steps.steps[arrow.end])
        for steps in flow.lists
        for index in range(len(steps.steps))
        for arrow in arrows_from(steps, index)
        if arrow.way is Way.CAUGHT
    }
    return {path for path, step in tasks.items() if id(step) in goals}


def takes_money(step: TaskStep) -> bool:
    """Whether a step or its function takes money, by its name."""
    function = step.target.function if isinstance(step.target, FunctionTarget) else ""
    return any(words and words[0] in _PAYS for words in map(_words, (step.name, function)))


def _undoing_name(step: TaskStep) -> str:
    """The name that says what the step undoes: its own, or that of its function."""
    is_function = isinstance(step.target, FunctionTarget) and not names_undoing(step.name)
    return step.target.function if is_function and isinstance(step.target, FunctionTarget) else step.name


class _Index:
    """Paths of steps that do something by what their names have: a flow with many steps is searched once."""

    def __init__(self, doing: Mapping[str, list[str]]) -> None:
        self.by_words: _Paths = defaultdict(list)
        self.by_object: _Paths = defaultdict(list)
        self.by_stems: _Paths = defaultdict(list)
        self.by_verb: dict[str, list[str]] = defaultdict(list)
        self.by_stem_of_verb: dict[str, list[str]] = defaultdict(list)
        for path, (verb, *of) in doing.items():
            self.by_words[verb, *of].append(path)
            self.by_words[*of].append(path)
            self.by_object[*of].append(path)
            self.by_stems[_stems([verb, *of])].append(path)
            self.by_verb[verb].append(path)
            self.by_stem_of_verb[_stem(verb)].append(path)


def _undone_by(verb: str, what: list[str], doing: _Index) -> list[str]:
    """The steps that a verb and its object undo: the first way to find any decides."""
    if what:
        same = doing.by_words[*what] or doing.by_stems[_stems(what)]
        if not same and what[-1] in _DEEDS and what[1:]:
            same = doing.by_object[*what[:-1]]
        if same:
            return same
        deed = [] if what[1:] else doing.by_stem_of_verb[_stem(what[0])]
        if deed:
            return deed if len(deed) == 1 else []
    if what and not (verb == "refund" and _MONEY.issuperset(what)):
        return []
    only = [path for done in _UNDONE_BY.get(verb, ()) for path in doing.by_verb[done]]
    return only if len(only) == 1 else []


def _stems(words: list[str]) -> tuple[str, ...]:
    return tuple(sorted(map(_stem, words)))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _stem(word: str) -> str:
    """What a verb has in common with its noun: `reserv` of `reserve` and of `reservation`."""
    word = word.replace("scription", "scribe")
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) >= _STEM_MIN), "")
    stem = word.removesuffix(ending)
    return stem.removesuffix("at") if len(stem) >= _STEM_MIN + 2 else stem
