"""The record of a run as seen from outside: calls of functions, acknowledgements of servers, faults. Instants are
seconds of the monotonic clock.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from flowserver.base.json_values import JsonObject

FAULTS_PER_LINE = 25


@dataclass(slots=True)
class Call:
    """One call that reached a function."""

    callee: str
    event_text: str
    key: str
    attempt: int
    flow: str
    execution: str
    step: str
    began: float
    is_silent: bool = False
    cut_at: float | None = None
    """The instant at which its connection was lost before an answer was sent."""


@dataclass(slots=True)
class Start:
    """An execution that a client wants, and the answers it has received about it."""

    flow: str
    name: str
    input: JsonObject
    acknowledged_at: float | None = None
    stop_acknowledged_at: float | None = None
    stop_tries: int = 0
    complaint: str | None = None
    """An answer that no server may give."""


@dataclass(slots=True)
class Report:
    """A report of a task's result that a server has acknowledged."""

    flow: str
    execution: str
    step: str
    event_id: int
    succeeded: bool


@dataclass(slots=True)
class Fault:
    """A fault that was injected."""

    at: float
    kind: str
    where: str
    until: float | None = None
    ready_at: float | None = None
    """The instant at which the node answered again; kills and leaves only."""
    started_at: float | None = None
    tries: int = 0
    """The time spent on starting the node again after a start failed because the database was down."""
    note: str = ""


@dataclass
class Journal:
    """The record of one run."""

    began: float
    log: Callable[[str], None]
    """Takes progress lines."""
    calls: list[Call] = field(default_factory=list)
    calls_at_work: int = 0
    """Calls that functions are working on, without those that they never answer."""
    starts: list[Start] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    already_reported: int = 0
    """Reports that were refused because the task had been settled."""
    faults: list[Fault] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    """Violations observed during the run that no fault excuses."""
    checks: int = 0
    """The number of reads of the view of violations."""
    lapses: list[float] = field(default_factory=list)
    """The instants at which a running node noticed that others had declared it dead: it was stopped, or its machine is
    slow.
    """
    calls_waiting_max: float = 0
    """The largest number of calls that waited for a slot at one node."""
    unanswered: int = 0
    """Requests that were repeated: broken connections, time-outs, 5xx and 429."""

    def fault(self, at: float, kind: str, where: str, note: str = "") -> Fault:
        """Record a fault that begins now."""
        self.faults.append(Fault(at, kind, where, note=note))
        if len(self.faults) % FAULTS_PER_LINE == 0:
            self.log(f"{len(self.faults)} faults, {len(self.starts)} starts, {len(self.calls)} calls")
        return self.faults[-1]

    def fault_log(self) -> list[str]:
        """The faults as lines, with seconds since the run began."""
        return [_line(fault, self.began) for fault in self.faults]


def _line(fault: Fault, began: float) -> str:
    length = "" if fault.until is None else f" for {fault.until - fault.at:.2f} s"
    ready = "" if fault.ready_at is None else f", ready again after {fault.ready_at - fault.at:.2f} s"
    tries = f", after {fault.tries} tries without a database" if fault.tries else ""
    return f"{fault.at - began:9.3f} {fault.kind} {fault.where}{length}{ready}{tries} {fault.note}".rstrip()
