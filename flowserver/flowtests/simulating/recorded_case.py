"""The test that repeats a run of a simulation, and expects the property that the run breaks.

Its mocks are by path, and have the answers of the run in their order: so it needs no seed, and no simulation.
"""

import os
from itertools import groupby
from pathlib import Path
from typing import Final

from flowserver.base.durations import shown_duration
from flowserver.base.json_values import JsonObject
from flowserver.flowtests.calls import Answer, Ordered
from flowserver.flowtests.cases import Crash
from flowserver.flowtests.simulating.simulation import Failure, Simulation
from flowserver.flowtests.step_paths import StepsByPath, walk
from flowserver.language.graph import Flow, FlowTarget, Pattern, QueueTarget, TaskStep, TopicTarget
from flowserver.machine import messages
from flowserver.machine.messages import Result, Success

REPLIES_MAX: Final = 200
"""Replies of one step; a run with more is not recorded: its test would be too long to read."""

_Table = dict[str, list[JsonObject]]


class NotRecordable(Exception):
    """No test can repeat the run; the message says why."""


def recorded_case(simulation: Simulation, failure: Failure, folder: Path) -> JsonObject:
    """The test, for a file in the folder. Raises NotRecordable."""
    mocks = _Mocks(folder)
    for ordered, _, answer in failure.run.calls.answers:
        mocks.add(ordered, answer)
    mocks.add_others(simulation.file.source.flow)
    title = f"{failure.property}: run {failure.first} of seed {simulation.seed}"
    case = failure.run.case
    test: JsonObject = {"name": title, "input": case.input}
    test |= mocks.document(is_endless=failure.run.record.endless is not None)
    expect = failure.expected if "status" in failure.expected else {"status": "Any", **failure.expected}
    return test | {"expect": expect}


class _Mocks:
    """The answers of a run as mocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._steps: _Table = {}
        self._callbacks: _Table = {}
        self._real: dict[str, JsonObject] = {}
        self._others: dict[str, JsonObject] = {}
        self._reports: dict[str, JsonObject] = {}

    def add(self, ordered: Ordered, answer: Answer) -> None:
        """Take in the next answer."""
        path = ordered.path
        if answer.child is not None:
            self._real[path] = {"real": os.path.relpath(answer.child.source.file, self._folder)}
            return
        self._steps.setdefault(path, []).append(_reply(ordered, answer))
        waits = ordered.command.pattern is Pattern.WAIT_FOR_CALLBACK
        if waits and answer.crash is not Crash.BEFORE and not isinstance(answer.reply, messages.Failure):
            self._callbacks.setdefault(path, []).append(_report(answer))

    def add_others(self, flow: Flow) -> None:
        """Let calls succeed that the run does not make: a flow that is right may make them."""
        steps = StepsByPath(flow)
        called = {steps.path_of(path) for path in (*self._steps, *self._real)}
        for path, step in walk(flow):
            if isinstance(step, TaskStep) and path not in called:
                self._others[path] = {"always": True}
                if step.pattern is Pattern.WAIT_FOR_CALLBACK:
                    self._reports[path] = {"succeed": {}, "always": True}

    def document(self, *, is_endless: bool) -> JsonObject:
        """Mocks as a test has them. Those of a run without an end never end, either."""
        if self._real.keys() & self._steps.keys():
            raise NotRecordable("steps of the flow and of a sub-flow that runs have one path")
        steps: JsonObject = {**self._real}
        for path, replies in self._steps.items():
            if path not in self._callbacks or any(replies):
                steps[path] = _folded(path, replies, is_endless=is_endless)
        steps |= self._others
        callbacks: JsonObject = {
            path: _folded(path, each, is_endless=is_endless) for path, each in self._callbacks.items()
        }
        callbacks |= self._reports
        return {name: table for name, table in (("steps", steps), ("callbacks", callbacks)) if table}


def _folded(path: str, replies: list[JsonObject], *, is_endless: bool) -> list[JsonObject]:
    """The replies, equal ones that follow each other as one; of an endless run each only once."""
    if is_endless:
        distinct = [reply for position, reply in enumerate(replies) if reply not in replies[:position]]
        return [*distinct[:-1], {**distinct[-1], "always": True}]
    found: list[JsonObject] = []
    for reply, same in groupby(replies):
        times = len(list(same))
        found.append(reply if times == 1 else {**reply, "times": times})
    if len(found) > REPLIES_MAX:
        raise NotRecordable(f"step {path} gets {len(found)} different replies, one after the other")
    return found


def _reply(ordered: Ordered, answer: Answer) -> JsonObject:
    if answer.crash is Crash.BEFORE:
        return {"crash": str(Crash.BEFORE)}
    command = ordered.command
    is_end = command.token is not None and command.pattern is Pattern.SYNC
    result, after_ms = (answer.report, answer.report_after_ms) if is_end else (answer.reply, answer.reply_after_ms)
    if is_end and isinstance(answer.reply, messages.Failure):
        result, after_ms = answer.reply, answer.reply_after_ms
    if result is None:
        return {"never": True}
    crash = {} if answer.crash is None else {"crash": str(answer.crash)}
    if isinstance(result, Success) and not is_end and _is_service(ordered):
        return {**_after(after_ms), **crash}
    return {**_result(result, "return", "error"), **_after(after_ms), **crash}


def _is_service(ordered: Ordered) -> bool:
    """Whether the step only gets a confirmation of the service."""
    command = ordered.command
    is_sent = isinstance(command.target, (QueueTarget, TopicTarget, FlowTarget)) or command.asynchronous
    return is_sent or command.pattern is Pattern.WAIT_FOR_CALLBACK or ordered.flow_name is not None


def _report(answer: Answer) -> JsonObject:
    if answer.report is None:
        return {"never": True}
    again_ms = answer.again_after_ms
    again = {} if again_ms is None else {"again": shown_duration(again_ms - answer.report_after_ms)}
    return {**_result(answer.report, "succeed", "fail"), **_after(answer.report_after_ms), **again}


def _result(result: Result, good: str, bad: str) -> JsonObject:
    if isinstance(result, Success):
        return {good: result.output}
    return {bad: result.error} | ({"cause": result.cause} if result.cause else {})


def _after(after_ms: int) -> JsonObject:
    return {"after": shown_duration(after_ms)} if after_ms else {}
