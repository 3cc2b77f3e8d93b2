"""Recovery times: from a kill to the repeated calls (several nodes), from a restart to the first answer and the first
repeated call (one node), and from a crash of the database to the next calls.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.chaos.journal import Call, Fault, Journal

CUT_SECONDS = 0.5
"""Calls whose connection is lost this soon after a kill were under way on the killed node."""


@dataclass
class Recovery:
    """Seconds, one number per call or per kill."""

    calls: list[float] = field(default_factory=list)
    """From the kill to the next attempt, for every call that was under way and was repeated."""
    kills: list[float] = field(default_factory=list)
    """The longest of them, for every kill that interrupted calls."""
    undisturbed: list[float] = field(default_factory=list)
    """The same, for kills without another fault at the time."""
    slowest: list[tuple[float, Call]] = field(default_factory=list)
    """For every kill, the call that was repeated last, and its delay after the kill."""
    first_answers: list[float] = field(default_factory=list)
    """From the begin of the restart to the node's first answer."""
    first_calls: list[float] = field(default_factory=list)
    """From the begin of the restart to the first repeated call."""
    pauses: list[float] = field(default_factory=list)
    """The longest time without a new call around a crash of the database."""


def measure(journal: Journal) -> Recovery:
    """The times of a run. A call that was not repeated (its execution ended otherwise) does not count."""
    kills = sorted((fault for fault in journal.faults if fault.kind == "kill"), key=lambda fault: fault.at)
    recovery = Recovery()
    for kill, again in _repeated_calls(kills, journal.calls).items():
        seconds = [call.began - kills[kill].at for call in again]
        last = max(again, key=lambda call: call.began)
        recovery.calls += seconds
        recovery.kills.append(max(seconds))
        recovery.slowest.append((max(seconds), last))
        if not _is_disturbed(kills[kill], last.began, journal.faults):
            recovery.undisturbed.append(max(seconds))
        started_at = kills[kill].started_at
        if started_at is not None:
            recovery.first_calls.append(min(call.began for call in again) - started_at)
    for fault in kills:
        if fault.ready_at is not None and fault.started_at is not None:
            recovery.first_answers.append(fault.ready_at - fault.started_at)
    began = sorted(call.began for call in journal.calls)
    recovery.pauses = [_pause(fault, began) for fault in journal.faults if fault.kind == "restart-postgres"]
    return recovery


def _pause(fault: Fault, calls: Sequence[float]) -> float:
    """Calls are few at the end of a run, so what is long after the database's return does not count."""
    first = max(0, bisect_right(calls, fault.at) - 1)
    after = bisect_right(calls, fault.until or fault.at)
    seen = calls[first : after + 1]
    return max((later - earlier for earlier, later in pairwise(seen)), default=0.0)


def _repeated_calls(kills: Sequence[Fault], calls: Iterable[Call]) -> dict[int, list[Call]]:
    """By the index of a kill, the repeated calls among those that it interrupted."""
    by_key: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_key[call.key].append(call)
    instants = [kill.at for kill in kills]
    found: dict[int, list[Call]] = defaultdict(list)
    for attempts in by_key.values():
        for call in attempts:
            number = -1 if call.cut_at is None or call.is_silent else bisect_right(instants, call.cut_at) - 1
            if number < 0 or call.cut_at is None or call.cut_at - instants[number] > CUT_SECONDS:
                continue
            again = [other for other in attempts if other.began > instants[number] and other is not call]
            if again:
                found[number].append(min(again, key=lambda other: other.began))
    return found


def _is_disturbed(kill: Fault, until: float, faults: Iterable[Fault]) -> bool:
    """Whether another fault happened between the kill and then, or shortly before."""
    return any(
        other is not kill and other.at < until and (other.until or other.ready_at or other.at) > kill.at - 1
        for other in faults
    )


def percentiles(seconds: Sequence[float]) -> str:
    """The usual percentiles, as text."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    points = {name: ordered[min(int(len(ordered) * share), len(ordered) - 1)] for name, share in _POINTS}
    return ", ".join(f"{name} {value:.2f} s" for name, value in points.items()) + f" (of {len(ordered)})"


_POINTS = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
