"""Input of executions and results of calls, made up from what a flow reads."""

import re
from typing import Final

from flowserver.base.clock import format_instant
from flowserver.base.json_values import Json, JsonObject
from flowserver.flowtests.cases import STARTED_MS
from flowserver.flowtests.choices import Choices
from flowserver.flowtests.simulating.key_kinds import KeyFacts, KeyKinds, Kind, kinds_of
from flowserver.flowtests.simulating.read_keys import ReadKeys
from flowserver.flowtests.step_paths import walk
from flowserver.language.graph import Flow, TaskStep

LEVELS_MAX: Final = 12
VALUES_MAX: Final = 300
"""Of one document; further lists in it are empty, and no objects are made if there are twice as many."""
RECURSIONS_MAX: Final = 2
"""How often an object is in another one with the same facts: a key that is read in itself."""
_OTHERS_SHARE: Final = 0.5
NUMBERS: Final = (1, 2, 3, 10)
SECONDS: Final = (1, 10, 0)
_LAST_NAME: Final = re.compile(r"\w+")


class MadeUpData:
    """The data of one flow."""

    def __init__(self, flow: Flow) -> None:
        self._kinds = kinds_of(flow)
        self._read = ReadKeys(flow, self._kinds)
        self._repeated = {id(step) for path, step in walk(flow) if "[]" in path}

    @property
    def is_doubtful(self) -> bool:
        """Whether some of it is surely wrong: the flow uses one name for different things."""
        return self._kinds.contradict

    def input(self, choices: Choices) -> JsonObject:
        """An input with every key that the flow reads."""
        document = _Document(self._kinds, choices)
        return {key: document.value(key, 1) for key in self._read.of_input}

    def result(self, step: TaskStep, choices: Choices) -> JsonObject:
        """A result with every key that the flow reads of this step's results.

        What other steps put out under a name may be theirs alone: plain results leave it out, others have it or not.
        The results of an iteration are no larger than nested lists: all iterations together would pass any limit.
        """
        level = 2 if id(step) in self._repeated else 1
        document = _Document(self._kinds, choices)
        found: JsonObject = {}
        for key, is_others in self._read.of_result(step).items():
            if not is_others or (choices.random is not None and choices.random.random() < _OTHERS_SHARE):
                found[key] = document.value(key, level)
        return found


class _Document:
    """Makes one document of a bounded size."""

    def __init__(self, kinds: KeyKinds, choices: Choices) -> None:
        self._kinds = kinds
        self._choices = choices
        self._left = VALUES_MAX
        self._around: list[int] = []
        """The facts of the objects around a value."""

    def value(self, name: str, level: int) -> Json:
        """The value of a key."""
        self._left -= 1
        facts = self._kinds.of(name)
        if facts.element is not None:
            is_full = level > LEVELS_MAX or self._left < 0
            size = 0 if is_full else max(self._choices.size(level), facts.size_min)
            return [self.value(facts.element, level + 1) for _ in range(size)]
        is_endless = level > LEVELS_MAX or self._left < -VALUES_MAX or self._around.count(id(facts)) > RECURSIONS_MAX
        if facts.members and not is_endless:
            self._around.append(id(facts))
            found = {key: self.value(name, level + 1) for key, name in facts.members.items()}
            self._around.pop()
            return found
        return self._choices.one_of(_values(name, facts))


def _used(facts: KeyFacts) -> tuple[Json, ...]:
    """What a step can use that fails with other values."""
    if Kind.SECONDS in facts.kinds:
        return SECONDS
    if Kind.INSTANT in facts.kinds:
        return tuple(format_instant(STARTED_MS + 1000 * each) for each in SECONDS)
    return NUMBERS if Kind.NUMBER in facts.kinds else ()


def _values(name: str, facts: KeyFacts) -> tuple[Json, ...]:
    used = _used(facts)
    if facts.constants:
        others: tuple[Json, ...] = ("other",)
        if facts.is_also_text:
            others = used
        elif all(isinstance(each, (bool, int, float)) for each in facts.constants.values()):
            others = ()
        return (*facts.constants.values(), *others)
    if used:
        return used
    if Kind.FLAG in facts.kinds:
        return True, False
    title = _LAST_NAME.findall(facts.word or name)
    return (f"{title[-1]}-1", f"{title[-1]}-2") if title else ("one", "two")
