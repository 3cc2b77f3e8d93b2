"""The results of a run as text: counts, recovery times, and a report on every violation."""

from collections import Counter
from collections.abc import Iterator

from tests.chaos.flows import CHILD
from tests.chaos.recovery import measure, percentiles
from tests.chaos.run import Outcome
from tests.chaos.verdict import results

REPORTS_MAX = 3
SLOW_SECONDS = 3.0
VIOLATIONS_MAX = 30


def summary(database: str, outcome: Outcome) -> str:
    """The figures of a run."""
    journal, found = outcome.journal, outcome.found
    kinds = Counter(fault.kind for fault in journal.faults)
    faults = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    ends = Counter(each.document["status"] for each in found.values())
    attempts = Counter(call.key for call in journal.calls)
    recovery = measure(journal)
    lines = [
        f"{database}, {outcome.plan.nodes} node(s), seed {outcome.plan.seed}: {faults} in {outcome.seconds:.0f} s",
        f"  executions   {len(journal.starts):,} started and {sum(key[0] == CHILD for key in found):,} sub-flows: "
        + ", ".join(f"{count:,} {end}" for end, count in ends.most_common()),
        f"  events       {sum(len(each.events) for each in found.values()):,}; "
        f"{sum(results(each.events) for each in found.values()):,} attempts of tasks settled",
        f"  calls        {len(journal.calls):,} under {len(attempts):,} keys; "
        f"{sum(call.cut_at is not None for call in journal.calls):,} cut off; "
        f"at most {journal.calls_waiting_max:.0f} waited for a slot at one node",
        f"  acknowledged {sum(start.acknowledged_at is not None for start in journal.starts):,} starts, "
        f"{len(journal.reports):,} reports, "
        f"{sum(start.stop_acknowledged_at is not None for start in journal.starts):,} stops; "
        f"{journal.already_reported:,} reports refused as settled; {journal.unanswered:,} requests repeated",
        f"  recovery     calls repeated:       {percentiles(recovery.calls)}",
        f"               last one, per kill:    {percentiles(recovery.kills)}",
        f"               without other faults:  {percentiles(recovery.undisturbed)}",
        f"               restart to answer:     {percentiles(recovery.first_answers)}",
        f"               restart to first call: {percentiles(recovery.first_calls)}",
        f"  pauses       without new calls, as the database crashes: {percentiles(recovery.pauses)}",
        f"  all ended    {outcome.end_seconds:.1f} s after the last fault",
        f"  invariant    read {journal.checks:,} times while faults were under way",
        f"  violations   {len(outcome.violations)}",
    ]
    return "\n".join(lines)


def failure_report(outcome: Outcome) -> str:
    """All that explains the violations; empty if there are none."""
    return "\n".join(_failure_lines(outcome)) if outcome.violations else ""


def slowest(outcome: Outcome) -> str:
    """The executions whose calls were repeated last; empty if none took `SLOW_SECONDS`."""
    recoveries = sorted(measure(outcome.journal).slowest, key=lambda each: -each[0])[:REPORTS_MAX]
    lines = [
        line
        for seconds, call in recoveries
        if seconds > SLOW_SECONDS
        for line in (
            f"repeated {seconds:.2f} s after a kill: attempt {call.attempt} of {call.key}",
            *_one(outcome, call.flow, call.execution),
        )
    ]
    return "\n".join(lines)


def _failure_lines(outcome: Outcome) -> Iterator[str]:
    yield f"seed {outcome.plan.seed}; faults:"
    yield from outcome.journal.fault_log()
    yield "violations:"
    for violation in outcome.violations[:VIOLATIONS_MAX]:
        yield f"{violation.flow}/{violation.execution}: {violation.what}"
    by_execution = {
        (violation.flow, violation.execution): violation for violation in outcome.violations if violation.flow
    }
    for violation in [*by_execution.values()][:REPORTS_MAX]:
        yield from _one(outcome, violation.flow, violation.execution)


def _one(outcome: Outcome, flow: str, execution: str) -> Iterator[str]:
    yield f"--- {flow}/{execution}"
    began = outcome.journal.began
    found = outcome.found.get((flow, execution))
    if found is not None:
        yield str(found.document)
        for event in found.events:
            yield f"  {event['eventId']} {event['scheduleEventId']} {event['time']} {event['type']} {event['stepName']}"
    for call in outcome.journal.calls:
        if (call.flow, call.execution) == (flow, execution):
            cut = "" if call.cut_at is None else f", cut at {call.cut_at - began:.3f}"
            yield f"  {call.began - began:9.3f} {call.step}: {call.callee} attempt {call.attempt} of {call.key}{cut}"
