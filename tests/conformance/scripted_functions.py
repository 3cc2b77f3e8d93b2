"""The cases' functions, actions and child flows for a real server: scripted answers over HTTP."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tests.conformance.cases import FlowCase, Reply
from tests.support.function_server import Call, FunctionError

SECONDS_PER_SECOND = 0.05
"""The real time of one second of a function's work; only the order of ends matters."""

PATIENCE_SECONDS = 60

CHILD = """\
version: v1
type: flow
steps:
  - type: task
    name: answer
    resourceArn: acs:fc:::services/t/functions/{name}
    inputMappings:
      - {{target: Input, source: $input}}
      - {{target: ExecutionName, source: $context.execution.name}}
"""
"""A child flow: a function answers for it and records its starts."""

Report = Callable[[str, Reply], None]


class ScriptedFunctions:
    """The scripted answers of one case, and the received calls. `report` gets the results of tasks
    that wait for them.
    """

    def __init__(self, case: FlowCase, report: Report) -> None:
        self.received: dict[str, list[Any]] = defaultdict(list)
        self._case = case
        self._report = report
        self._left = {name: list(script) for name, script in case.replies.items()}
        self._lock = threading.Lock()
        at_once = [len(script) for script in case.replies.values() if "foreach" in case.flow and len(script) > 1]
        self._all_called = threading.Barrier(*at_once or [1])

    @property
    def titles(self) -> list[str]:
        """The functions to register, as `service/function`."""
        return [title_of(name) for name in {*self._case.replies, "echo"}]

    @property
    def children(self) -> dict[str, str]:
        """The child flows to create, by name."""
        return {name: CHILD.format(name=name) for name in self._case.replies if f":flow/{name}" in self._case.flow}

    def answer(self, call: Call) -> Any:
        """The answer of the function."""
        name = call.function.removeprefix("t/").replace("/", ":")
        reply = self._next_reply(name, call.event)
        time.sleep(reply.after_seconds * SECONDS_PER_SECOND)
        if "waitForCallback" in self._case.flow:  # a report may arrive before the call that submits the task is over
            self._report(call.event["token"], reply)
            return {}
        return reply.returns if reply.raises is None else FunctionError(reply.raises, reply.cause)

    def _next_reply(self, name: str, event: Any) -> Reply:
        with self._lock:
            self.received[name].append(event)
        if self._all_called.parties > 1:
            # Calls of several iterations arrive in any order; the script is in the order of the collection.
            self._all_called.wait(PATIENCE_SECONDS)
            return self._left[name][sorted(self.received[name], key=json.dumps).index(event)]
        with self._lock:
            script = self._left.get(name) or [Reply(returns=event)]
            return script.pop(0) if len(script) > 1 else script[0]


def title_of(name: str) -> str:
    """The `service/function` of a case's `name`: a function of the service t, or an action."""
    return name.replace(":", "/") if ":" in name else f"t/{name}"


def over_http(case: FlowCase, expected: Any) -> Any:
    """An expected value as it is over HTTP: the cause of a function's error is its whole error document."""
    if "waitForCallback" in case.flow:
        return expected
    for script in case.replies.values():
        for reply in script:
            if reply.cause and expected == reply.cause:
                return json.dumps({"errorType": reply.raises, "errorMessage": reply.cause}, separators=(",", ":"))
    if isinstance(expected, dict):
        return {key: over_http(case, value) for key, value in expected.items()}
    return expected
