"""Real servers keep every promise under kills, other faults and load. Long runs: `python -m tests.chaos`."""

from collections import Counter

import pytest

from tests.chaos.chaos import run_chaos
from tests.chaos.faults import KINDS
from tests.chaos.report import failure_report, summary
from tests.chaos.run import Plan

PLANS = {
    "sqlite": Plan(
        seed=20_261_121, kills=4, kinds=KINDS, nodes=1, processes=2, pause_seconds=0.4, clients=12, flows=12, places=4
    ),
    "postgres": Plan(seed=20_261_121, kills=4, kinds=KINDS, nodes=3, pause_seconds=0.4, clients=12, flows=12, places=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("database", PLANS)
def test_no_fault_breaks_a_promise(database: str) -> None:
    plan = PLANS[database]
    outcome = run_chaos(database, plan, fast_start=True)
    assert not outcome.violations, summary(database, outcome) + "\n" + failure_report(outcome)
    journal = outcome.journal
    kinds = Counter(fault.kind for fault in journal.faults)
    assert kinds["kill"] == plan.kills
    assert kinds.keys() == set(KINDS) - {"restart-postgres" if database == "sqlite" else "disk"}
    assert journal.checks, "the view of violations was not read"
    assert journal.calls_waiting_max, "no call waited for a slot"
    assert any(call.cut_at is not None and not call.is_silent for call in journal.calls), "no fault interrupted a call"
    assert {each.document["status"] for each in outcome.found.values()} >= {"Succeeded", "Failed"}
