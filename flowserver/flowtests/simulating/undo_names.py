"""Which steps undo the work of which others, by their names: `ReleaseReservation` undoes `Reserve`.

A pair is made only if the names leave no choice: two steps `BookHotel` and `BookFlight` make none with `CancelBooking`.
"""

import re
from collections.abc import Iterator, Mapping, Set
from typing import Final

from flowserver.analysis.compensation import names_undoing, undoes_by_name
from flowserver.language.graph import FunctionTarget, TaskStep

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
    for undo, (verb, *what) in undoing.items():
        yield from ((done, undo) for done in _undone_by(verb, what, doing))
    for undo, (_, *what) in deleting.items():
        yield from ((done, undo) for done, (verb, *of) in doing.items() if what and of == what and verb in _CREATES)


def takes_money(step: TaskStep) -> bool:
    """Whether a step or its function takes money, by its name."""
    function = step.target.function if isinstance(step.target, FunctionTarget) else ""
    return any(words and words[0] in _PAYS for words in map(_words, (step.name, function)))


def _undoing_name(step: TaskStep) -> str:
    """The name that says what the step undoes: its own, or that of its function."""
    is_function = isinstance(step.target, FunctionTarget) and not names_undoing(step.name)
    return step.target.function if is_function and isinstance(step.target, FunctionTarget) else step.name


def _undone_by(verb: str, what: list[str], doing: Mapping[str, list[str]]) -> list[str]:
    """The steps that a verb and its object undo: the first way to find any decides."""
    if what:
        same = [path for path, words in doing.items() if what in (words, words[1:])]
        same = same or [path for path, words in doing.items() if sorted(map(_stem, what)) == sorted(map(_stem, words))]
        same = same or [path for path, words in doing.items() if what[-1] in _DEEDS and words[1:] == what[:-1] != []]
        if same:
            return same
        deed = [path for path, words in doing.items() if what == what[:1] and _stem(words[0]) == _stem(what[0])]
        if deed:
            return deed if len(deed) == 1 else []
    if what and not (verb == "refund" and _MONEY.issuperset(what)):
        return []
    only = [path for path, words in doing.items() if words[0] in _UNDONE_BY.get(verb, ())]
    return only if len(only) == 1 else []


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _stem(word: str) -> str:
    """What a verb has in common with its noun: `reserv` of `reserve` and of `reservation`."""
    word = word.replace("scription", "scribe")
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) >= _STEM_MIN), "")
    stem = word.removesuffix(ending)
    return stem.removesuffix("at") if len(stem) >= _STEM_MIN + 2 else stem
