"""Checks that the steps and resources that a test file names are in its flows: a misspelt mock would never be used."""

from collections.abc import Callable, Iterable

from flowserver.flowtests.cases import Mock, Mocks, Table, TestFile
from flowserver.flowtests.mocks import kind_of
from flowserver.flowtests.resource_names import meant_by_key, names_of
from flowserver.flowtests.step_paths import general, tasks_of, walk
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import Report, shown
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    Span,
    Target,
    TaskStep,
    TopicTarget,
)
from flowserver.language.nodes import ListNode, ScalarNode
from flowserver.language.resources import START_EXECUTION
from flowserver.machine.event_paths import is_path


class KnownNames:
    """The names in the flows of one file."""

    def __init__(self, file: TestFile, report: Report, work: Work) -> None:
        self._file = file
        self._report = report
        self._work = work
        self._walked = [(general(path), step) for source in file.sources for path, step in walk(source.flow)]
        self._paths = {path for path, _ in self._walked}
        self._names = {step.name for _, step in self._walked}
        self._own_paths = {general(path) for path, _ in walk(file.source.flow)}
        self._targets = [task.target for source in file.sources for task in tasks_of(source.flow)]
        self._starts_any_flow = any(_starts_any(target) for target in self._targets)

    def check(self) -> None:
        """Report what is not known."""
        self._check_mocks(self._file.mocks)
        for case in self._file.cases:
            self._check_mocks(case.mocks)
            self._check_list(case.expect.path, self._own_paths)
            self._check_list(case.expect.path_includes, self._own_paths)
            self._check_list(case.expect.never, None)
            for calls in case.expect.calls:
                if not self._is_step(calls.key):
                    self._check_resource(calls.key, calls.span, self._targets)

    def _check_mocks(self, mocks: Mocks) -> None:
        for mock in mocks.steps.values():
            self._check_task(mock, "calls nothing", lambda _: True)
            if mock.real is not None:
                self._check_task(mock, "starts no sub-flow", lambda task: kind_of(task.target) == "flows")
        for mock in mocks.callbacks.values():
            what = "does not wait for a callback"
            self._check_task(mock, what, lambda task: task.pattern is Pattern.WAIT_FOR_CALLBACK)
        kinds: tuple[tuple[Table, tuple[type, ...]], ...] = (
            (mocks.functions, (FunctionTarget, ActionTarget)),
            (mocks.queues, (QueueTarget,)),
            (mocks.topics, (TopicTarget,)),
            (mocks.flows, (FlowTarget,)),
        )
        for table, types in kinds:
            if table is mocks.flows and self._starts_any_flow:
                continue  # which flow it is, its parameters say
            self._check_resources(table.values(), [each for each in self._targets if isinstance(each, types)])

    def _check_resources(self, mocks: Iterable[Mock], targets: list[Target]) -> None:
        for mock in mocks:
            self._check_resource(mock.key, mock.span, targets)

    def _check_resource(self, key: str, span: Span, targets: list[Target]) -> None:
        if any(meant_by_key(key, target) for target in targets):
            return
        known = sorted({name for target in targets for name in names_of(target)})
        hint = self._work.similar(key, known[:100]) or (f"there is {shown(known[0])}" if known else None)
        self._report.error("unknown-resource", span, f"no step of the flow calls {shown(key)}", hint)

    def _check_task(self, mock: Mock, what: str, is_fit: Callable[[TaskStep], bool]) -> None:
        """Report a mock for a step that makes no call which it could answer."""
        if not self._is_step(mock.key):
            self._unknown_step(mock.key, mock.span, self._paths if is_path(mock.key) else self._names)
            return
        meant = (step for path, step in self._walked if mock.key == step.name or general(mock.key) == path)
        if not any(isinstance(step, TaskStep) and is_fit(step) for step in meant):
            self._report.error("bad-value", mock.span, f"the step {shown(mock.key)} {what}")

    def _check_list(self, node: ListNode | None, paths: set[str] | None) -> None:
        for item in node.items if node else ():
            if not isinstance(item, ScalarNode):
                continue
            if paths is None:
                self._check_step(item.text, item.span)
            elif general(item.text) not in paths:
                self._unknown_step(item.text, item.span, paths)

    def _check_step(self, wanted: str, span: Span) -> None:
        if not self._is_step(wanted):
            self._unknown_step(wanted, span, self._paths if is_path(wanted) else self._names)

    def _is_step(self, wanted: str) -> bool:
        return general(wanted) in self._paths if is_path(wanted) else wanted in self._names

    def _unknown_step(self, wanted: str, span: Span, known: set[str]) -> None:
        ends = [path for path in sorted(known) if path.endswith(f".{wanted}")]
        hint = f"its path is `{ends[0]}`" if ends else self._work.similar(general(wanted), sorted(known)[:100])
        self._report.error("unknown-step", span, f"the flow has no step {shown(wanted)}", hint)


def _starts_any(target: Target) -> bool:
    return isinstance(target, ActionTarget) and target.action == START_EXECUTION
