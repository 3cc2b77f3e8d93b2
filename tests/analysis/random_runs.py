"""Runs of a flow with random input and random answers, made of the words of its definition.

A key that no answer ever has would make every claim about it true. So inputs and answers have the keys that the
definition reads, at any level, with values that its conditions compare.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from flowserver.base.clock import format_instant
from flowserver.base.json_values import Json, JsonObject, dump_json_bytes
from flowserver.base.limits import Limits
from flowserver.flowtests.simulating.key_kinds import KeyKinds, Kind
from flowserver.language.graph import ActionTarget, Flow, FlowTarget, QueueTarget, TaskStep, TopicTarget
from flowserver.machine.commands import InvokeTask
from flowserver.machine.mappings import MissingSource
from flowserver.machine.messages import Failure, Message, Result, Success, TaskReplied
from flowserver.machine.retry_and_catch import ALL_ERRORS, INVALID_LOCAL
from flowserver.machine.sent_messages import reply_of
from flowserver.machine.service_params import failure_of_action
from flowserver.machine.state import Status
from flowserver.machine.sub_flow_reply import reply_to_start
from flowserver.machine.turn import Turn
from tests.support.world import NOW_MS, SUBMITTED, World, callee_of

DEPTH_MAX = 3
TURNS_MAX = 300
LISTS = ("list", "items")

_KEYS = re.compile(r"(?<=[.])[A-Za-z_]\w*")
_PATHS = re.compile(r"\$(?:input|local)?(?:\.\w+|\[[^\]\s]*\])+")
_TEXTS = re.compile(r'"([^"\\\n]{1,20})"|`([^`\n]{1,20})`')
_NUMBERS = re.compile(r"(?<=[=<>] )-?\d+(?:\.\d+)?")


ABSENT: Final = "(absent)"
SILENT: Final = "(silent)"


@dataclass(frozen=True)
class Plan:
    """What a run is to have, nearly always: the values of keys, and the outcomes of steps' calls.

    A value is ABSENT, or any JSON value. An outcome is "" for success, SILENT, or the name of an error.
    """

    values: Mapping[str, Json] = field(default_factory=dict)
    outcomes: Mapping[str, str] = field(default_factory=dict)


KEPT: Final = 0.9
"""How often a plan is kept."""

TROUBLE: Final = (0, 0.05, 0.17, 0.5, 0.95)
"""Which share of a run's calls fails, or is not answered: one of these."""


WAITS_FOR_REDRIVE: Final = 0.1
"""The share of runs whose steps wait for a redrive instead of failing."""


class Vocabulary:
    """What inputs and answers are made of."""

    def __init__(self, text: str, flow: Flow) -> None:
        self.keys = sorted({key for path in _PATHS.findall(text) for key in _KEYS.findall(path)} | {"a"})
        self._kinds = KeyKinds(flow)
        self._lists = {*LISTS, *(key for key in self.keys if self._kinds.of(key).element is not None)}
        texts = {one or other for one, other in _TEXTS.findall(text)}
        self._texts = [*sorted(texts), "text", "1", "true", "", format_instant(NOW_MS + 3_000)]
        numbers = {int(float(found)) + more for found in _NUMBERS.findall(text) for more in (0, 1)}
        self._numbers: list[float] = [*sorted(numbers), 0, 1, 2, 3, -1]
        named: set[str] = set()
        for steps in flow.lists:
            for step in steps.steps:
                if isinstance(step, TaskStep):
                    named |= frozenset().union(*(entry.errors for entry in (*step.retry, *step.catch)))
        self.errors = sorted((named - {ALL_ERRORS}) | {"E1", "E3", "FnF.TaskTimeout"})

    @property
    def compared(self) -> list[str]:
        """The keys whose values decide the way of a run, as far as that is known; all, if of none it is."""
        kinds = {key: self._kinds.of(key) for key in self.keys}
        found = [key for key, each in kinds.items() if each.constants or each.kinds or each.members or each.element]
        return found or self.keys

    def candidates(self, key: str) -> list[Json]:
        """Values of a key that a plan may want: first what the flow compares it with."""
        kinds = self._kinds.of(key)
        whole: JsonObject = {each: self._plain(each) for each in self.keys}
        if key in self._lists:
            return [[], [1], [whole], [whole, whole], [[1], [2]], ABSENT, None, 1, 2]
        if kinds.members:
            return [whole, {}, ABSENT, None]
        if kinds.constants:
            return [*kinds.constants.values(), ABSENT, None, 0, "text"]
        return [1, 0, "text", self._texts[-1], True, False, ABSENT, None, -1, whole]

    def _fits(self, key: str) -> list[Json]:
        """Values with which the flow goes on where it reads the key, as far as that is known."""
        facts = self._kinds.of(key)
        fits: list[Json] = [value for value in facts.constants.values() if value is not None]
        if Kind.INSTANT in facts.kinds:
            fits.append(format_instant(NOW_MS + 3_000))
        if facts.kinds & {Kind.NUMBER, Kind.SECONDS}:
            fits += [0, 1, 2]
        if facts.members:
            fits.append({each: self._plain(each) for each in facts.members})
        return fits

    def _plain(self, key: str) -> Json:
        constants = self._kinds.of(key).constants
        return [1, 2] if key in self._lists else next(iter(constants.values()), 1)

    def document(self, random: Random, plan: Plan, depth: int = 0) -> JsonObject:
        """An object with some of the keys."""
        share = random.choice([0.4, 0.7, 0.95])
        found: JsonObject = {}
        for key in self.keys:
            if key in plan.values and random.random() < KEPT:
                if plan.values[key] != ABSENT:
                    found[key] = plan.values[key]
            elif random.random() < share:
                found[key] = self._value(random, key, plan, depth + 1)
        return found

    def failure(self, random: Random) -> Failure:
        """An error that the flow names, or another one."""
        return Failure(random.choice(self.errors), random.choice(["", "cause"]))

    def _value(self, random: Random, key: str, plan: Plan, depth: int) -> Json:
        if depth < DEPTH_MAX and key in self._lists and random.random() < 0.7:
            return [self._value(random, "", plan, depth + 1) for _ in range(random.choice([0, 1, 2, 2, 3]))]
        if key and (fits := self._fits(key)) and random.random() < 0.5:
            return random.choice(fits)
        kind = random.random()
        if depth < DEPTH_MAX and kind < 0.25:
            return self.document(random, plan, depth)
        if kind < 0.6:
            return random.choice(self._numbers)
        return random.choice([*self._texts, True, False, None])


class RandomWorld(World):
    """One run; `lists_max` is how many lists were open, or waited for a join, at once."""

    def __init__(
        self,
        flow: Flow,
        words: Vocabulary,
        random: Random,
        limits: Limits,
        *,
        fails: bool = False,
        plan: Plan | None = None,
    ) -> None:
        self._words, self._random, self._plan = words, random, plan or Plan()
        missing: MissingSource = "fail" if fails else "null"
        self._trouble = random.choice(TROUBLE)
        self._bytes_max = limits.step_data_bytes_max // 4
        waits = random.random() < WAITS_FOR_REDRIVE
        given = self._document()
        super().__init__(flow, input=given, limits=limits, missing_source=missing, waits_for_redrive=waits)
        self.execution.name = random.choice(["exec1", "exec1", "0", "1", "2", "text"])
        self.lists_max = 0

    def tell(self, message: Message) -> Turn:
        turn = super().tell(message)
        self.lists_max = max(self.lists_max, len(self.execution.scopes) + self.execution.finished_count)
        return turn

    def run_bounded(self) -> None:
        """Run to the end of the execution, or to TURNS_MAX: a loop may have no end."""
        self.start()
        self.go_on(TURNS_MAX)

    @property
    def can_be_redriven(self) -> bool:
        """Whether the execution ended without success, or has a step that waits for a redrive."""
        return self.execution.status in (Status.FAILED, Status.TIMED_OUT) or bool(self.execution.waiting_steps)

    def run_again(self) -> None:
        """Redrive the execution."""
        self.redrive()
        self.go_on(TURNS_MAX)

    def _call(self, call: InvokeTask) -> None:
        self.received.setdefault(callee_of(call.target), []).append(call.input)
        if call.token is None:
            self._answer(call, SUBMITTED if call.asynchronous else self._result(call))
            return
        self._answer(call, SUBMITTED)
        planned = self._planned(call)
        if planned is not None:
            if planned != SILENT:
                result = Failure(planned, "planned") if planned else self._success(call)
                self._later(self._delay(call), self._reported(call.token, result))
        elif self._random.random() < 0.85:
            result = self._words.failure(self._random) if self._random.random() < 0.2 else self._success(call)
            self._later(self._delay(call), self._reported(call.token, result))

    def _planned(self, call: InvokeTask) -> str | None:
        return self._plan.outcomes.get(call.step_name) if self._random.random() < KEPT else None

    def _answer(self, call: InvokeTask, result: Result) -> None:
        luck = self._random.random()
        planned = self._planned(call) if self._plan.outcomes else None
        if planned is not None and call.token is None:
            if planned == SILENT:
                return
            result = Failure(planned, "planned") if planned else result
        elif luck < self._trouble / 4:
            return
        elif luck < self._trouble:
            result = self._words.failure(self._random)
        if isinstance(result, Failure) and isinstance(call.target, ActionTarget):
            result = failure_of_action(result, call.target.service)
        self._later(self._delay(call), TaskReplied(call.scope_id, call.wait_id, result))

    def _result(self, call: InvokeTask) -> Result:
        match call.target:
            case QueueTarget() | TopicTarget():
                return Success(reply_of(call, "0" * 32))
            case FlowTarget(flow_name=name):
                return Success(reply_to_start("id", name, "", "run", "{}", self.now_ms))
            case ActionTarget(service="fnf"):
                return Success(reply_to_start("id", "child", "", "run", "{}", self.now_ms))
        return self._success(call)

    def _success(self, _: InvokeTask) -> Result:
        if self._random.random() < self._trouble / 4:
            return Failure(INVALID_LOCAL, "not an object")
        return Success(self._document())

    def _document(self) -> JsonObject:
        """An object for which no step fails only because it is large."""
        found = self._words.document(self._random, self._plan)
        return found if len(dump_json_bytes(found)) <= self._bytes_max else {}

    def _delay(self, call: InvokeTask) -> int:
        """Often at once, else about when the attempt, or the flow, times out."""
        left = [0, 0, 0, 1, 4]
        if call.deadline_at is not None:
            left.append((call.deadline_at - self.now_ms) // 1000)
        left.append(min((self.execution.deadline_at - self.now_ms) // 1000, 20))
        return max(self._random.choice(left) + self._random.choice([-1, 0, 0, 1]), 0)
