"""The verdict finds every kind of broken promise."""

from collections.abc import Callable
from typing import Any

import pytest

from flowserver.base.json_values import JsonObject
from tests.chaos.answers import SeenFunctions, SteadyFunctions
from tests.chaos.flows import FlowSet
from tests.chaos.history import Event
from tests.chaos.journal import Call, Fault, Journal, Report, Start
from tests.chaos.verdict import FinalState, Key, Verdict

KEY = ("work", "run0")
TASK = {"type": "task", "name": "t", "resourceArn": "acs:fc:::services/sim/functions/echo"}
DEFINITION: JsonObject = {"version": "v1", "type": "flow", "steps": [TASK]}
HISTORY = (
    "1 0 ExecutionStarted -",
    "2 1 StepEntered t",
    "3 2 StepStarted t",
    "4 3 TaskScheduled t",
    "5 4 TaskStarted t",
    "6 5 TaskSucceeded t",
    "7 6 StepSucceeded t",
    "8 7 StepExited t",
    "9 8 ExecutionSucceeded -",
)


class Scene:
    """A run of one execution without a violation, which a test can spoil."""

    def __init__(self) -> None:
        self.journal = Journal(0.0, lambda _: None)
        self.journal.starts.append(Start(*KEY, {"a": 1}, acknowledged_at=1.0))
        self.journal.calls.append(Call("echo", '{"a": 1}', "key", 1, *KEY, "t", 1.0))
        self.journal.reports.append(Report(*KEY, "t", 6, succeeded=True))
        self.document: dict[str, Any] = {
            "status": "Succeeded", "input": {"a": 1}, "output": {"a": 1}, "error": None, "cause": None,
            "parkedError": None,
        }  # fmt: skip
        self.history = list(HISTORY)

    def violations(self) -> list[str]:
        found: dict[Key, FinalState] = {KEY: FinalState(self.document, [_event(line) for line in self.history])}
        if not self.history:
            found = {}
        flow_set = FlowSet({"work": DEFINITION}, SeenFunctions(SteadyFunctions("1")))
        return [violation.what for violation in Verdict(self.journal, flow_set, found).violations()]

    def again(self, attempt: int, began: float, key: str = "key") -> None:
        """Add another call of the step."""
        self.journal.calls.append(Call("echo", '{"a": 1}', key, attempt, *KEY, "t", began))


def _event(line: str) -> Event:
    number, cause, kind, step = line.split()
    return {"eventId": int(number), "scheduleEventId": int(cause), "type": kind, "stepName": step.strip("-")}


def test_a_good_run_has_no_violation() -> None:
    assert Scene().violations() == []


def test_a_repeated_call_is_no_violation() -> None:
    scene = Scene()
    scene.again(2, 2.0)
    assert scene.violations() == []


def test_a_late_call_is_a_violation_unless_its_node_was_stopped() -> None:
    scene = Scene()
    scene.again(3, 2.0)
    scene.again(2, 3.0)
    assert scene.violations() == ["attempt 2 of key came after 3"]
    scene.journal.faults.append(Fault(0.0, "stop", "node1", until=2.9))
    assert scene.violations() == []


def test_a_late_call_is_no_violation_if_its_node_was_declared_dead_at_the_time() -> None:
    scene = Scene()
    scene.again(3, 2.0)
    scene.again(2, 30.0)
    scene.journal.lapses.append(2.0)
    assert scene.violations() == ["attempt 2 of key came after 3"]
    scene.journal.lapses.append(30.1)
    assert scene.violations() == []


def _lose_the_execution(scene: Scene) -> None:
    scene.history.clear()


def _lose_an_event(scene: Scene) -> None:
    del scene.history[2]


def _end_twice(scene: Scene) -> None:
    scene.history.append("10 9 ExecutionSucceeded -")


def _exit_twice(scene: Scene) -> None:
    scene.history[8:] = ["9 7 StepExited t", "10 9 ExecutionSucceeded -"]


def _settle_twice(scene: Scene) -> None:
    scene.history[8:] = ["9 5 TaskSucceeded t", "10 8 ExecutionSucceeded -"]


def _call_an_attempt_twice(scene: Scene) -> None:
    scene.again(1, 2.0)


def _call_under_two_keys(scene: Scene) -> None:
    scene.again(1, 2.0, key="another")


def _never_call(scene: Scene) -> None:
    scene.journal.calls.clear()


def _stick(scene: Scene) -> None:
    scene.document["status"] = "Running"
    del scene.history[5:]
    scene.journal.reports.clear()


def _park(scene: Scene) -> None:
    scene.document["parkedError"] = "a bug"


def _give_another_output(scene: Scene) -> None:
    scene.document["output"] = {"a": 2}


def _fail(scene: Scene) -> None:
    scene.document |= {"status": "Failed", "output": None, "error": "E1", "cause": ""}
    scene.history[8] = "9 8 ExecutionFailed -"


def _forget_a_report(scene: Scene) -> None:
    scene.journal.reports.append(Report(*KEY, "t", 7, succeeded=True))


def _acknowledge_a_report_twice(scene: Scene) -> None:
    scene.journal.reports *= 2


def _forget_a_stop(scene: Scene) -> None:
    scene.journal.starts[0].stop_acknowledged_at = 2.0


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (_lose_the_execution, "its start was acknowledged, and it does not exist"),
        (_lose_an_event, "not dense"),
        (_end_twice, "the ends [(9, 'Succeeded'), (10, 'Succeeded')]"),
        (_exit_twice, "is exited 2 times"),
        (_settle_twice, "attempt 4 has 2 results"),
        (_call_an_attempt_twice, "attempt 1 of key was made twice"),
        (_call_under_two_keys, "called under 2 keys"),
        (_never_call, "less often than the oracle says"),
        (_stick, "it is stuck"),
        (_park, "it is parked"),
        (_give_another_output, "the oracle says {'a': 1}"),
        (_fail, "the oracle says {'a': 1}"),
        (_forget_a_report, "was acknowledged, and the history has"),
        (_acknowledge_a_report_twice, "was acknowledged twice"),
        (_forget_a_stop, "its stop was acknowledged, and it is Succeeded"),
    ],
)
def test_every_violation_is_found(spoil: Callable[[Scene], None], part: str) -> None:
    scene = Scene()
    spoil(scene)
    assert any(part in what for what in scene.violations()), scene.violations()
