"""Checks that the steps and resources that a test file names are in its flows: a misspelt mock would never be used."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from flowserver.base.step_paths import is_path
from flowserver.expressions.conditions import Condition
from flowserver.flowtests.cases import Mock, Mocks, TestFile
from flowserver.flowtests.condition_names import CALLS, PATH, steps_named_in
from flowserver.flowtests.mocks import kind_of
from flowserver.flowtests.properties import Always, AtMostOnce, Compensated, Never, Property
from flowserver.flowtests.resource_names import keys_of, meant_by_key, names_of, title_of
from flowserver.flowtests.step_paths import StepsByPath, tasks_of, walk
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import Report, shown
from flowserver.language.graph import (
    ActionTarget,
    Flow,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    Span,
    Step,
    Target,
    TaskStep,
    TopicTarget,
)
from flowserver.language.nodes import ListNode, ScalarNode
from flowserver.language.resources import START_EXECUTION

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "functions": (FunctionTarget, ActionTarget),
    "queues": (QueueTarget,),
    "topics": (TopicTarget,),
    "flows": (FlowTarget,),
}
"""What each attribute of mocks names."""

_TITLES_MAX: Final = 5  # names in the hint of a name that is like none of them


class KnownNames:
    """The names in the flows of one file."""

    def __init__(self, file: TestFile, report: Report, work: Work) -> None:
        self._file = file
        self._report = report
        self._work = work
        self._all = _Steps(*(source.flow for source in file.sources))
        self._own = _Steps(file.source.flow)
        self._tasks = [task for source in file.sources for task in tasks_of(source.flow)]
        self._targets = list(dict.fromkeys(task.target for task in self._tasks))
        self._starts_any_flow = any(_starts_any(target) for target in self._targets)
        self._keys = {types: _keys_of(self._targets, types) for types in (*_TYPES.values(), (object,))}

    def check(self) -> None:
        """Report what is not known."""
        self._check_mocks(self._file.mocks)
        if self._file.simulation is not None:
            self._check_properties(self._file.simulation.properties)
        for case in self._file.cases:
            self._check_mocks(case.mocks)
            self._check_list(case.expect.path)
            self._check_list(case.expect.path_includes)
            self._check_properties(case.expect.properties)
            for calls in case.expect.calls:
                self._check_step_or_resource(calls.key, calls.span)

    def _check_properties(self, properties: tuple[Property, ...]) -> None:
        for each in properties:
            span = each.span
            assert span is not None, "it is from the file"
            match each:
                case Never(step):
                    self._check_step(step, span)
                case AtMostOnce(key):
                    self._check_step_or_resource(key, span)
                case Compensated(step, undo, when):
                    self._check_step(step, span)
                    self._check_step(undo, span)
                    self._check_condition(when, span)
                case Always(then, if_):
                    self._check_condition(if_, span)
                    self._check_condition(then, span)

    def _check_condition(self, condition: Condition | None, span: Span) -> None:
        """Report a step that no run counts: what is compared with nothing is not true, and its negation always is."""
        for fact, step, *_ in () if condition is None else steps_named_in(condition.text):
            if fact == PATH:
                self._check_own_path(step, span)
            elif fact != CALLS:
                self._check_step(step, span, self._own)
            elif not self._all.known_as(step):
                callers = (task.name for task in self._tasks if meant_by_key(step, task.target))
                if caller := next(callers, None):
                    hint = f"calls count by step: {shown(caller)} makes such calls"
                    self._report.error("unknown-step", span, f"the flow has no step {shown(step)}", hint)
                else:
                    self._check_step(step, span)

    def _check_mocks(self, mocks: Mocks) -> None:
        for mock in mocks.steps.values():
            self._check_task(mock, "calls nothing", lambda _: True)
            if mock.real is not None:
                self._check_task(mock, "starts no sub-flow", lambda task: kind_of(task.target) == "flows")
        for mock in mocks.callbacks.values():
            what = "does not wait for a callback"
            self._check_task(mock, what, lambda task: task.pattern is Pattern.WAIT_FOR_CALLBACK)
        for kind, types in _TYPES.items():
            if kind == "flows" and self._starts_any_flow:
                continue  # which flow it is, its parameters say
            for mock in getattr(mocks, kind).values():
                self._check_resource(mock.key, mock.span, types)

    def _check_step_or_resource(self, key: str, span: Span) -> None:
        if not self._all.known_as(key):
            self._check_resource(key, span, (object,), self._all.alternatives(key))

    def _check_resource(
        self, key: str, span: Span, types: tuple[type, ...], steps: Collection[str] = frozenset()
    ) -> None:
        """Report a key that means no resource; `steps` are those that it could mean as well."""
        if key in self._keys[types]:
            return
        targets = [target for target in self._targets if isinstance(target, types)]
        known = [*sorted(steps), *sorted({name for target in targets for name in names_of(target)})]
        hint = self._work.similar(key, known[:100]) or _there_are(sorted({title_of(target) for target in targets}))
        what = (
            f"the flow has no step {shown(key)}, and none that calls it"
            if steps
            else f"no step of the flow calls {shown(key)}"
        )
        self._report.error("unknown-resource", span, what, hint)

    def _check_task(self, mock: Mock, what: str, is_fit: Callable[[TaskStep], bool]) -> None:
        """Report a mock for a step that makes no call which it could answer."""
        meant = self._all.known_as(mock.key)
        if not meant:
            self._check_step(mock.key, mock.span)
        elif not any(isinstance(step, TaskStep) and is_fit(step) for step in meant):
            self._report.error("bad-value", mock.span, f"the step {shown(mock.key)} {what}")

    def _check_list(self, node: ListNode | None) -> None:
        for item in node.items if node else ():
            if isinstance(item, ScalarNode):
                self._check_own_path(item.text, item.span)

    def _check_own_path(self, wanted: str, span: Span) -> None:
        if not any(self._own.by_path.all(wanted)):
            self._unknown_step(wanted, span, self._own.paths)

    def _check_step(self, wanted: str, span: Span, steps: "_Steps | None" = None) -> None:
        steps = steps or self._all
        if not steps.known_as(wanted):
            self._unknown_step(wanted, span, steps.alternatives(wanted))

    def _unknown_step(self, wanted: str, span: Span, known: Iterable[str]) -> None:
        ends = [path for path in sorted(known) if path.endswith(f".{wanted}")]
        hint = f"its path is `{ends[0]}`" if ends else self._work.similar(wanted, sorted(known)[:100])
        self._report.error("unknown-step", span, f"the flow has no step {shown(wanted)}", hint)


class _Steps:
    """The steps of some flows, by name and by path."""

    def __init__(self, *flows: Flow) -> None:
        self.by_path = StepsByPath(*flows)
        self.paths: set[str] = set()
        self._by_name: dict[str, list[Step]] = {}
        for path, step in (each for flow in flows for each in walk(flow)):
            self.paths.add(path)
            self._by_name.setdefault(step.name, []).append(step)

    def known_as(self, wanted: str) -> list[Step]:
        """The steps that a name or a path can mean."""
        return [step for _, step in self.by_path.all(wanted)] if is_path(wanted) else self._by_name.get(wanted, [])

    def alternatives(self, wanted: str) -> Collection[str]:
        """The paths if it is a path, else the names."""
        return self.paths if is_path(wanted) else self._by_name.keys()


def _keys_of(targets: list[Target], types: tuple[type, ...]) -> set[str]:
    return {key for target in targets if isinstance(target, types) for key in keys_of(target)}


def _there_are(titles: list[str]) -> str | None:
    if len(titles) < 2:
        return f"there is {shown(titles[0])}" if titles else None
    more = f" and {len(titles) - _TITLES_MAX} more" if len(titles) > _TITLES_MAX else ""
    return f"there are {', '.join(map(shown, titles[:_TITLES_MAX]))}{more}"


def _starts_any(target: Target) -> bool:
    return isinstance(target, ActionTarget) and target.action == START_EXECUTION
