"""The conformance cases as flow tests: a test file means what the language means.

The function `echo` of the cases answers with its input, which no reply of a test file can, so these cases are left to
the machine's own tests.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Case, Expectation, Mock, Mocks, Reply, Source, TestFile
from flowserver.flowtests.mock_reading import result_of
from flowserver.flowtests.running import VirtualRun
from flowserver.flowtests.step_paths import tasks_of
from flowserver.language.graph import FlowTarget, Pattern, Span
from flowserver.language.parser import parse
from flowserver.machine.messages import Failure
from tests.conformance.cases import FlowCase, flow_cases
from tests.support.world import ECHO, NOW_MS, callee_of

CASES = [case for case in flow_cases() if case.refused is None and ECHO not in case.flow]
NOWHERE = Span(1, 1, 1, 2)
NEVER = (Reply(NOWHERE, None, times=None, is_never=True),)


def replies_of(case: FlowCase, callee: str) -> tuple[Reply, ...]:
    """The last reply of a script is given again and again; a call without a script gets no answer."""
    script = case.replies.get(callee, ())
    return tuple(
        Reply(
            NOWHERE,
            Failure(each.raises, each.cause) if each.raises is not None else result_of(each.returns),
            each.after_seconds * 1000,
            1 if number < len(script) else None,
        )
        for number, each in enumerate(script, 1)
    )


def mocks_of(case: FlowCase, source: Source) -> Iterator[tuple[str, str, Mock]]:
    for task in tasks_of(source.flow):
        replies = replies_of(case, callee_of(task.target)) or NEVER
        if task.pattern is Pattern.WAIT_FOR_CALLBACK:
            yield "callbacks", task.name, Mock(task.name, NOWHERE, replies)
        else:
            kind = "flows" if isinstance(task.target, FlowTarget) else "steps"
            name = callee_of(task.target) if kind == "flows" else task.name
            yield kind, name, Mock(name, NOWHERE, replies)


def run_as_flow_test(case: FlowCase) -> VirtualRun:
    limits = Limits.of(case.limits)
    source = Source(Path("flow.yaml"), case.flow, parse(case.flow, limits).flow)
    tables: dict[str, dict[str, Mock]] = {}
    for kind, name, mock in mocks_of(case, source):
        tables.setdefault(kind, {}).setdefault(name, mock)
    test = Case(case.name, NOWHERE, case.input, NOW_MS, "exec1", Mocks(**tables), Expectation(NOWHERE))
    file = TestFile(Path("a.flowtest.yaml"), "", source, "conf", Mocks(), (test,))
    return VirtualRun(file, test, limits, "null")


def test_cases_without_echo_are_many() -> None:
    assert len(CASES) > 35


@pytest.mark.parametrize("case", CASES, ids=str)
def test_flow(case: FlowCase) -> None:
    record = run_as_flow_test(case).run()
    execution = record.execution
    received: dict[str, list] = {}
    for call in record.calls:
        received.setdefault(callee_of(call.target), []).append(call.input)
    found = {
        "status": str(execution.status),
        "output": execution.output,
        "error": execution.error,
        "cause": execution.cause,
        "entered": [path.rpartition(".")[2].partition("[")[0] for path in record.entered],
    }
    assert {key: found[key] for key in case.expect if key in found} == {
        key: value for key, value in case.expect.items() if key in found
    }
