"""Runs of a flow with random input and random answers, made of the words of its definition.

A key that no answer ever has would make every claim about it true. So inputs and answers have the keys that the
definition reads, at any level, with values that its conditions compare.
"""

import re
from random import Random

from flowserver.base.clock import format_instant
from flowserver.base.json_values import Json, JsonObject
from flowserver.base.limits import Limits
from flowserver.language.graph import ActionTarget, Flow, FlowTarget, QueueTarget, TaskStep, TopicTarget
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Failure, Message, Result, Success, TaskReplied
from flowserver.machine.retry_and_catch import ALL_ERRORS, INVALID_LOCAL
from flowserver.machine.sent_messages import reply_of
from flowserver.machine.service_params import failure_of_action
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
_LISTS = re.compile(r"(\w+)\[|collection: \S*?(\w+)$", re.MULTILINE)


class Vocabulary:
    """What inputs and answers are made of."""

    def __init__(self, text: str, flow: Flow) -> None:
        self._keys = sorted({key for path in _PATHS.findall(text) for key in _KEYS.findall(path)} | {"a"})
        self._lists = {*LISTS, *(one or other for one, other in _LISTS.findall(text))}
        texts = {one or other for one, other in _TEXTS.findall(text)}
        self._texts = [*sorted(texts), "text", "1", "true", "", format_instant(NOW_MS + 3_000)]
        self._numbers: list[float] = [*sorted({int(float(found)) for found in _NUMBERS.findall(text)}), 0, 1, 2, 3, -1]
        named: set[str] = set()
        for steps in flow.lists:
            for step in steps.steps:
                if isinstance(step, TaskStep):
                    named |= frozenset().union(*(entry.errors for entry in (*step.retry, *step.catch)))
        self._errors = sorted((named - {ALL_ERRORS}) | {"E1", "E3", "FnF.TaskTimeout"})

    def document(self, random: Random, depth: int = 0) -> JsonObject:
        """An object with some of the keys."""
        share = random.choice([0.4, 0.7, 0.95])
        return {key: self._value(random, key, depth + 1) for key in self._keys if random.random() < share}

    def failure(self, random: Random) -> Failure:
        """An error that the flow names, or another one."""
        return Failure(random.choice(self._errors), random.choice(["", "cause"]))

    def _value(self, random: Random, key: str, depth: int) -> Json:
        if depth < DEPTH_MAX and key in self._lists and random.random() < 0.7:
            return [self._value(random, "", depth + 1) for _ in range(random.choice([0, 1, 2, 2, 3]))]
        kind = random.random()
        if depth < DEPTH_MAX and kind < 0.25:
            return self.document(random, depth)
        if kind < 0.6:
            return random.choice(self._numbers)
        return random.choice([*self._texts, True, False, None])


class RandomWorld(World):
    """One run; `lists_max` is how many lists were open, or waited for a join, at once."""

    def __init__(self, flow: Flow, words: Vocabulary, random: Random, limits: Limits, *, fails: bool = False) -> None:
        missing = "fail" if fails else "null"
        super().__init__(flow, input=words.document(random), limits=limits, missing_source=missing)
        self.lists_max = 0
        self._words, self._random = words, random

    def tell(self, message: Message) -> Turn:
        turn = super().tell(message)
        self.lists_max = max(self.lists_max, len(self.execution.scopes) + self.execution.finished_count)
        return turn

    def run_bounded(self) -> None:
        """Run to the end of the execution, or to TURNS_MAX: a loop may have no end."""
        self.start()
        self.go_on(TURNS_MAX)

    def _call(self, call: InvokeTask) -> None:
        self.received.setdefault(callee_of(call.target), []).append(call.input)
        if call.token is None:
            self._answer(call, SUBMITTED if call.asynchronous else self._result(call))
            return
        self._answer(call, SUBMITTED)
        if self._random.random() < 0.85:
            result = self._words.failure(self._random) if self._random.random() < 0.2 else self._success(call)
            self._later(self._delay(call), self._reported(call.token, result))

    def _answer(self, call: InvokeTask, result: Result) -> None:
        luck = self._random.random()
        if luck < 0.05:
            return
        if luck < 0.17:
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
        return self._success(call)

    def _success(self, _: InvokeTask) -> Result:
        if self._random.random() < 0.04:
            return Failure(INVALID_LOCAL, "not an object")
        return Success(self._words.document(self._random))

    def _delay(self, call: InvokeTask) -> int:
        """Often at once, else about when the attempt, or the flow, times out."""
        left = [0, 0, 0, 1, 4]
        if call.deadline_at is not None:
            left.append((call.deadline_at - self.now_ms) // 1000)
        left.append(min((self.execution.deadline_at - self.now_ms) // 1000, 20))
        return max(self._random.choice(left) + self._random.choice([-1, 0, 0, 1]), 0)
