"""Compares what a run has done with what its case expects."""

import operator
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from flowserver.base.durations import shown_duration
from flowserver.base.json_values import Json
from flowserver.base.step_paths import agree
from flowserver.flowtests.budget import Budget
from flowserver.flowtests.cases import Case, ExpectedCalls, Place, TestFile
from flowserver.flowtests.differences import Difference, differences
from flowserver.flowtests.fields import ANY_STATUS
from flowserver.flowtests.findings import Finding
from flowserver.flowtests.records import Call, Record
from flowserver.flowtests.resource_names import meant_by_key
from flowserver.flowtests.step_paths import names_step, step_at
from flowserver.language.graph import Span
from flowserver.language.nodes import ListNode, MapNode, ScalarNode
from flowserver.machine.state import Status

DIFFERENCES_MAX: Final = 10
"""Differences of one document, and lines of one path, that a test shows."""

COMPARED_MAX: Final = 200
"""Entries of two paths that are compared, from the first that differs."""

PATH_LINES_BEFORE: Final = 3
"""Lines before that one, of a long path."""

_OPERATORS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


class Checks:
    """The checks of one run."""

    def __init__(self, file: TestFile, case: Case, record: Record, budget: Budget | None = None) -> None:
        self._file = file
        self._budget = budget or Budget()
        self._case = case
        self._expect = case.expect
        self._record = record
        self._execution = record.execution

    def findings(self) -> Iterator[Finding]:
        """What differs; nothing if the case passes. Raises BudgetSpent."""
        is_as_expected = True
        for found in self._end():
            is_as_expected = False
            yield found
        if is_as_expected and self._execution.status is Status.SUCCEEDED:
            yield from self._document(self._expect.output, "output", self._execution.output or {}, is_exact=True)
            includes = self._expect.output_includes
            yield from self._document(includes, "output", self._execution.output or {}, is_exact=False)
        yield from self._path()
        yield from self._path_includes()
        yield from self._properties()
        for calls in self._expect.calls:
            yield from self._calls(calls)
        yield from self._took()

    def _end(self) -> Iterator[Finding]:
        expect, execution = self._expect, self._execution
        wanted = expect.status.text if expect.status else None
        if wanted is None and expect.error is None and expect.cause is None and expect.cause_includes is None:
            wanted = Status.SUCCEEDED
        if wanted not in (None, ANY_STATUS, execution.status):
            span = expect.status.span if expect.status else self._case.span
            yield self._finding(f"expected the status {wanted}, got {self._shown_end()}", span, at_failure=True)
            return
        if expect.error is not None and expect.error.text != execution.error:
            message = f"expected the error {expect.error.text}, got {self._shown_end()}"
            yield self._finding(message, expect.error.span, at_failure=True)
            return
        cause = execution.cause or ""
        if expect.cause is not None and expect.cause.text != cause:
            yield self._finding(f"expected the cause {expect.cause.text!r}, got {cause!r}", expect.cause.span)
        if expect.cause_includes is not None and expect.cause_includes.text not in cause:
            message = f"expected a cause with {expect.cause_includes.text!r}, got {cause!r}"
            yield self._finding(message, expect.cause_includes.span)

    def _shown_end(self) -> str:
        execution = self._execution
        if execution.status is Status.SUCCEEDED:
            return str(execution.status)
        cause = f" ({execution.cause})" if execution.cause else ""
        return f"{execution.status} with {execution.error}{cause}"

    def _document(self, expected: MapNode | None, title: str, actual: Json, *, is_exact: bool) -> Iterator[Finding]:
        if expected is not None:
            found = list(islice(differences(expected, actual, is_exact=is_exact), DIFFERENCES_MAX + 1))
            if found:
                yield self._differing(title, found)

    def _differing(self, title: str, found: list[Difference]) -> Finding:
        more = ("further differences",) if len(found) > DIFFERENCES_MAX else ()
        others = tuple(each.text for each in found[1:DIFFERENCES_MAX])
        return self._finding(f"{title} {found[0].text}", found[0].span, details=(*others, *more))

    def _path(self) -> Iterator[Finding]:
        expected = self._expect.path
        if expected is None:
            return
        wanted = [item.text for item in expected.items if isinstance(item, ScalarNode)]
        entered = self._record.entered
        pairs = zip(wanted, entered, strict=False)
        first = next((at for at, (one, other) in enumerate(pairs) if not _is_at(other, one)), None)
        if first is None and len(wanted) == len(entered):
            return
        at = min(len(wanted), len(entered)) if first is None else first
        expectation = f"expected step {wanted[at]}" if at < len(wanted) else "expected the end"
        got = f"got step {entered[at]}" if at < len(entered) else "got the end"
        span = expected.items[at].span if at < len(expected.items) else expected.span
        definition = self._step_place(entered[at]) if at < len(entered) else None
        message = f"path, entry {at + 1}: {expectation}, {got}"
        yield Finding(message, self._file.place(span), definition, details=tuple(_path_lines(wanted, entered, at)))

    def _path_includes(self) -> Iterator[Finding]:
        expected = self._expect.path_includes
        position = 0
        entered = self._record.entered
        for item in expected.items if expected else ():
            text = item.text if isinstance(item, ScalarNode) else ""
            found = next((at for at in range(position, len(entered)) if _is_at(entered[at], text)), None)
            if found is None:
                after = f" after {entered[position - 1]}" if position else ""
                message = f"step {text} was not entered{after}"
                yield self._finding(message, item.span, details=(f"entered: {', '.join(entered[:100])}",))
                return
            position = found + 1

    def _properties(self) -> Iterator[Finding]:
        record = self._record
        for each in self._expect.properties:
            before = record.visited
            self._budget.spend_on_names(len(record.entered))
            broken = each.broken_by(record)
            self._budget.spend_on_names(len(record.entered) + len(record.calls) + record.visited - before)
            if broken is not None:
                definition = None if broken.path is None else self._step_place(broken.path)
                yield Finding(broken.message, self._file.place(each.span or self._case.span), definition)

    def _calls(self, expected: ExpectedCalls) -> Iterator[Finding]:
        self._budget.spend_on_names(len(self._record.calls))
        made = [call for call in self._record.calls if _is_of(call, expected.key)]
        if expected.count is not None and expected.count != len(made):
            message = f"expected {_counted(expected.count)} of {expected.key}, got {len(made)}"
            details = tuple(f"{call.path}" for call in made[:DIFFERENCES_MAX])
            yield self._finding(message, expected.span, details=details)
            return
        inputs = expected.inputs.items if isinstance(expected.inputs, ListNode) else ()
        for number, (node, call) in enumerate(zip(inputs, made, strict=False), 1):
            self._budget.spend(1)
            found = list(islice(differences(node, call.input, is_exact=expected.is_exact), DIFFERENCES_MAX + 1))
            if found:
                yield self._differing(f"input of call {number} of {expected.key}, by step {call.path},", found)

    def _took(self) -> Iterator[Finding]:
        took_ms = self._record.took_ms
        for bound in self._expect.took:
            if not _OPERATORS[bound.operator](took_ms, bound.duration_ms):
                sign = "" if bound.operator == "=" else f"{bound.operator} "
                message = f"expected to take {sign}{shown_duration(bound.duration_ms)}, took {shown_duration(took_ms)}"
                yield self._finding(message, self._expect.took_span or self._case.span)

    def _finding(self, message: str, span: Span, *, at_failure: bool = False, details: tuple[str, ...] = ()) -> Finding:
        failed_step = self._execution.failed_step if at_failure else None
        definition = self._step_place(failed_step) if failed_step else None
        if definition is None and at_failure and self._record.entered:
            details = (*details, f"the last step that it entered is {self._record.entered[-1]}")
        return Finding(message, self._file.place(span), definition, details=details)

    def _step_place(self, path: str) -> Place | None:
        source = self._file.source
        step = step_at(source.flow, path)
        return None if step is None else source.place(step.span)


def _is_at(path: str, wanted: str) -> bool:
    return agree(path, wanted)


def _is_of(call: Call, key: str) -> bool:
    return names_step(key, call.path, call.step_name) or meant_by_key(key, call.target)


def _counted(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"


def _path_lines(wanted: list[str], entered: list[str], at: int) -> Iterator[str]:
    """The paths side by side: `-` is expected and missing, `+` was entered and not expected.

    Their first `at` entries are equal. Entries far behind are not compared: that would take long.
    """
    begin = max(0, at - PATH_LINES_BEFORE) if max(len(wanted), len(entered)) > 2 * DIFFERENCES_MAX else 0
    end = at + COMPARED_MAX
    lines: list[str] = []
    matcher = SequenceMatcher(None, wanted[begin:end], entered[begin:end], autojunk=False)
    for tag, one, one_end, other, other_end in matcher.get_opcodes():
        if tag == "equal":
            lines += [f"  {path}" for path in wanted[begin + one : begin + one_end]]
        else:
            lines += [f"- {path}" for path in wanted[begin + one : begin + one_end]]
            lines += [f"+ {path}" for path in entered[begin + other : begin + other_end]]
    is_cut = len(lines) > 2 * DIFFERENCES_MAX or max(len(wanted), len(entered)) > end
    yield from ["  …"] if begin else []
    yield from lines[: 2 * DIFFERENCES_MAX]
    yield from ["  …"] if is_cut else []
