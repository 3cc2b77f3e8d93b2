"""The calls of a simulated run: the replies of the test file's mocks, or made-up ones, and faults among them."""

from collections.abc import Callable
from typing import Protocol

from flowserver.base.json_values import dump_json
from flowserver.flowtests.budget import Budget
from flowserver.flowtests.calls import Answer, MockedCalls, Ordered
from flowserver.flowtests.cases import Case, Mock, Reply, TestFile
from flowserver.flowtests.mocks import CaseMocks, Supply
from flowserver.flowtests.running import Running
from flowserver.flowtests.simulating.faults import Fault, Place, changed, replacement, replaces
from flowserver.flowtests.step_paths import StepsByPath
from flowserver.language.graph import ActionTarget, FlowTarget, Pattern, QueueTarget, Span, Target, TopicTarget
from flowserver.language.resources import START_EXECUTION
from flowserver.machine.events import Event
from flowserver.machine.messages import Success

Draw = Callable[[Ordered, Place], Fault | None]
"""The fault that meets a call."""

MakeResult = Callable[[Ordered, Place], Reply]
"""The reply to a call that no mock answers."""


class Watcher(Protocol):
    """Sees what happens in a run."""

    def observe(self, running: Running, event: Event, path: str) -> None:
        """The next event of an execution of the run."""

    def met(self, now_ms: int, fault: Fault) -> None:
        """A fault meets a call, after the events of the turn that has ordered it."""


_NOWHERE = Span(1, 1, 1, 2)


def made_up(value: dict[str, object] | None) -> Reply:
    """A reply with a value; None for what the service answers."""
    return Reply(_NOWHERE, None if value is None else Success(value))


class _Cycle(Supply):
    """The replies of a mock, again and again."""

    def take(self) -> Reply | None:
        return super().take() or self._begin_again()

    def _begin_again(self) -> Reply | None:
        self._position = self._used = 0
        return super().take()


class _MadeUp(Supply):
    """The reply to one call."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(Mock("", _NOWHERE), is_own=False)
        self._reply = reply

    def take(self) -> Reply:
        return self._reply


class _Mocks(CaseMocks):
    """The mocks of the file, which never end, and made-up replies where there are none."""

    def __init__(self, file: TestFile, case: Case) -> None:
        super().__init__(file, case)
        self.reply = self.report = made_up(None)
        """To the call that is being answered."""

    def for_call(self, target: Target, flow_name: str | None, path: str, name: str) -> Supply | None:
        return _mocked(super().for_call(target, flow_name, path, name)) or _MadeUp(self.reply)

    def for_callback(self, path: str, name: str) -> Supply | None:
        return _mocked(super().for_callback(path, name)) or _MadeUp(self.report)

    def _supply(self, mock: Mock, is_own: bool) -> Supply:
        return self._supplies.setdefault(id(mock), _Cycle(mock, is_own=is_own))


def _mocked(found: Supply | None) -> Supply | None:
    """A mock, unless it makes real calls: simulations make none."""
    return None if found is None or found.mock.callee is not None else found


class SimulatedCalls(MockedCalls):
    """Answers the calls of one run; notes the faults that met them."""

    def __init__(self, file: TestFile, case: Case, draw: Draw, make: MakeResult, watcher: Watcher | None) -> None:
        self._mocks = _Mocks(file, case)
        super().__init__(file, case, Budget(), self._mocks)
        self._draw = draw
        self._make = make
        self._watcher = watcher
        self._entries: dict[tuple[str, str], dict[str, int]] = {}
        """By execution and path the calls of each entry, by idempotency key."""
        self._own = ""
        self._steps: dict[int, StepsByPath] = {}
        """By the identity of the flow."""
        self._sites: dict[tuple[str, str], str] = {}
        """By execution and path."""
        self.faults: list[Fault] = []
        """Those that met calls; a fault that met several is there as often."""
        self.answers: list[tuple[Ordered, Place, Answer]] = []
        """Of all calls."""
        self.untold: set[str] = set()
        """The paths of steps that wait for a report, and put their token into nothing that they send."""

    def answer(self, ordered: Ordered) -> Answer:
        """The answer, with the fault that meets the call."""
        place = self._place(ordered)
        fault = self._draw(ordered, place)
        if fault is not None:
            self.faults.append(fault)
            if self._watcher is not None:
                self._watcher.met(ordered.now_ms, fault)
        answer = self._answer(ordered, place, fault)
        self.answers.append((ordered, place, answer))
        return answer

    def _answer(self, ordered: Ordered, place: Place, fault: Fault | None) -> Answer:
        if fault is not None and replaces(fault):
            return replacement(fault, ordered)
        self._make_up(ordered, place)
        answer = super().answer(ordered)
        return answer if fault is None else changed(fault, answer, ordered)

    def _place(self, ordered: Ordered) -> Place:
        key = ordered.command.idempotency_key
        execution = key.rpartition("-")[0]
        self._own = self._own or execution
        execution = "" if execution == self._own else execution
        calls = self._entries.setdefault((execution, ordered.path), {})
        calls[key] = calls.get(key, 0) + 1
        if (execution, ordered.path) not in self._sites:
            self._sites[execution, ordered.path] = self._site(ordered, execution)
        return Place(execution, ordered.path, len(calls), calls[key])

    def site_of(self, place: Place) -> str:
        """The step in the definition that makes the call: `Both[0].A`; in a sub-flow `refund: pack[].A`."""
        return self._sites.get((place.execution, place.path), place.path)

    def _site(self, ordered: Ordered, execution: str) -> str:
        flow = ordered.source.flow
        if id(flow) not in self._steps:
            self._steps[id(flow)] = StepsByPath(flow)
        path = self._steps[id(flow)].path_of(ordered.path)
        return f"{ordered.execution.flow_name}: {path}" if execution else path

    def _make_up(self, ordered: Ordered, place: Place) -> None:
        command = ordered.command
        result = self._make(ordered, place)
        self._mocks.reply = self._mocks.report = made_up(None)
        if command.pattern is Pattern.WAIT_FOR_CALLBACK:
            self._mocks.report = result
            if command.token is not None and command.token not in dump_json(ordered.input):
                self.untold.add(ordered.path)
                self._mocks.report = Reply(_NOWHERE, None, is_never=True)
        elif command.pattern is Pattern.SYNC or _returns(command.target):
            self._mocks.reply = result


def _returns(target: Target) -> bool:
    """Whether the call returns what a function says, rather than what the service does."""
    starts_flow = isinstance(target, ActionTarget) and target.action == START_EXECUTION
    return not starts_flow and not isinstance(target, (FlowTarget, QueueTarget, TopicTarget))
