"""The verdict: compares the servers' final state with what they acknowledged, the calls that functions saw, and the
oracle.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos.flows import CHILD, FlowSet
from tests.chaos.history import TASK_RESULTS, Event, violations
from tests.chaos.journal import Call, Journal, Report, Start
from tests.simulation.reference import Expected

SETTLED_LATE_SECONDS = 5.0
"""For this long after a halt or a lost connection, and around the instant at which it notices that it was declared
dead, a node may still send a call that it had prepared.
"""

TIMEOUT = "FnF.TaskTimeout"
"""The cause names the call's time limit, which depends on faults."""

ID_CHARACTERS = 36
"""The length of an execution's id, with which keys of calls begin. The entry of the step follows, then the attempt."""

Key = tuple[str, str]
"""Flow and execution name."""


@dataclass(frozen=True, slots=True)
class FinalState:
    """The final state of an execution, as a server shows it."""

    document: dict[str, Any]
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise."""

    flow: str
    execution: str
    what: str


class Verdict:
    """Checks one run; `found` holds every execution that any server knows."""

    def __init__(self, journal: Journal, flow_set: FlowSet, found: dict[Key, FinalState]) -> None:
        self._journal = journal
        self._flow_set = flow_set
        self._found = found
        self._calls: dict[Key, list[Call]] = defaultdict(list)
        for call in journal.calls:
            self._calls[call.flow, call.execution].append(call)
        self._starts = {(start.flow, start.name): start for start in journal.starts}
        self._reports: dict[Key, list[Report]] = defaultdict(list)
        for report in journal.reports:
            self._reports[report.flow, report.execution].append(report)

    def violations(self) -> list[Violation]:
        """All violations."""
        wrong = [Violation("", "", complaint) for complaint in self._journal.complaints]
        for key, start in self._starts.items():
            wrong += [Violation(*key, what) for what in self._check_start(start)]
        for key, execution in self._found.items():
            wrong += [Violation(*key, what) for what in self._check_execution(key, execution)]
        return wrong

    def _check_start(self, start: Start) -> Iterator[str]:
        if start.complaint is not None:
            yield start.complaint
        found = self._found.get((start.flow, start.name))
        if found is None:
            if start.acknowledged_at is not None:
                yield "its start was acknowledged, and it does not exist"
            return
        status = found.document["status"]
        if start.stop_acknowledged_at is not None and status != "Stopped":
            yield f"its stop was acknowledged, and it is {status}"
        if status == "Stopped" and not start.stop_tries:
            yield "it is Stopped, and no client has stopped it"

    def _check_execution(self, key: Key, found: FinalState) -> Iterator[str]:
        document = found.document
        if document["parkedError"] is not None:
            yield f"it is parked: {document['parkedError']}"
        if document["status"] == "Running":
            yield "it is stuck"
        yield from violations(found.events, document["status"])
        yield from self._check_reports(key, found.events)
        calls = self._calls[key]
        yield from self._check_attempts(calls)
        yield from _check_keys(calls, found.events)
        expected = self._flow_set.expected(key[0], key[1], document["input"])
        if document["status"] in ("Succeeded", "Failed", "TimedOut"):
            yield from _check_end(document, expected)
        if document["status"] == "Succeeded":
            yield from _check_work(key[0], calls, found.events, expected)

    def _check_reports(self, key: Key, events: Sequence[Event]) -> Iterator[str]:
        seen: set[int] = set()
        for report in self._reports[key]:
            event = events[report.event_id - 1] if report.event_id <= len(events) else None
            due = "TaskSucceeded" if report.succeeded else "TaskFailed"
            if event is None or (event["type"], event["stepName"]) != (due, report.step):
                yield f"{report} was acknowledged, and the history has {event}"
            if report.event_id in seen:
                yield f"{report} was acknowledged twice"
            seen.add(report.event_id)

    def _check_attempts(self, calls: Sequence[Call]) -> Iterator[str]:
        """Attempt numbers are unique and rise, except for calls that a stopped node had prepared."""
        highest: dict[str, int] = {}
        seen: set[tuple[str, int]] = set()
        for call in calls:
            if (call.key, call.attempt) in seen:
                yield f"attempt {call.attempt} of {call.key} was made twice"
            seen.add((call.key, call.attempt))
            if call.attempt < highest.get(call.key, 0) and not self._may_arrive_late(call):
                yield f"attempt {call.attempt} of {call.key} came after {highest[call.key]}"
            highest[call.key] = max(call.attempt, highest.get(call.key, 0))

    def _may_arrive_late(self, call: Call) -> bool:
        ends = (fault.until for fault in self._journal.faults if fault.kind in ("stop", "restart-postgres"))
        if any(until is not None and 0 <= call.began - until < SETTLED_LATE_SECONDS for until in ends):
            return True
        return any(abs(call.began - lapse) < SETTLED_LATE_SECONDS for lapse in self._journal.lapses)


def _check_keys(calls: Sequence[Call], events: Sequence[Event]) -> Iterator[str]:
    """Each entry of a step makes its calls under one key, and its asynchronous submissions under one key per
    attempt.
    """
    entries, keys = defaultdict(set), defaultdict(set)
    for call in calls:
        entries[call.step].add(_entry_of(call))
        keys[call.step].add(call.key)
    entered = Counter(event["stepName"] for event in events if event["type"] == "StepEntered")
    scheduled = Counter(event["stepName"] for event in events if event["type"] == "TaskScheduled")
    for step, its_entries in entries.items():
        if len(its_entries) > entered[step]:
            yield f"step {step} was entered {entered[step]} times and called under {len(its_entries)} keys"
        elif len(keys[step]) > scheduled[step]:
            yield f"step {step} was scheduled {scheduled[step]} times and called under {len(keys[step])} keys"


def _entry_of(call: Call) -> tuple[str, str]:
    """The execution and the entry of the step that calls, for any attempt."""
    return call.key[:ID_CHARACTERS], call.key[ID_CHARACTERS + 1 :].partition("-")[0]


def _check_end(document: dict[str, Any], expected: Expected) -> Iterator[str]:
    status, output = document["status"], document["output"]
    if expected.output is not None:
        if (status, output) != ("Succeeded", expected.output):
            yield f"it is {status} with {output}, {document['error']}; the oracle says {expected.output}"
        return
    causes = {cause for error, cause in expected.problems if error == document["error"]}
    is_right = causes & {None, document["cause"]} or (causes and document["error"] == TIMEOUT)
    if status != "Failed" or not is_right:
        error = f"{document['error']} ({document['cause']})"
        yield f"it is {status} with {output}, {error}; the oracle says one of {set(expected.problems)}"


def _check_work(flow: str, calls: Sequence[Call], events: Sequence[Event], expected: Expected) -> Iterator[str]:
    """A success has entered exactly the steps, and called exactly the functions, that the oracle expects."""
    entered = Counter(event["stepName"] for event in events if event["type"] == "StepEntered")
    if entered != expected.entered:
        yield f"it entered {entered}; the oracle says {expected.entered}"
    made = Counter({_entry_of(call): (call.callee, call.event_text) for call in calls}.values())
    due: Counter[tuple[str, str]] = Counter()
    for (callee, event, retry), count in expected.calls.items():
        is_function = flow == CHILD or callee != CHILD  # the sub-flow calls the function of the same name
        if retry == 0 and is_function:
            due[callee, event] += count
    missed = {
        work: count for work, count in (due - made).items() if not work[0].startswith("slow")
    }  # their time limits passed
    if missed or made - due:
        yield f"functions worked {made - due} more and {missed} less often than the oracle says"


def results(events: Sequence[Event]) -> int:
    """The number of attempts of tasks that a history has settled."""
    return sum(event["type"] in TASK_RESULTS for event in events)
