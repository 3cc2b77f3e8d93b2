"""PostgreSQL's primary dies under load, and its synchronous standby takes over: nothing that was acknowledged is lost.

Long runs: `python -m tests.chaos --database postgres-standby`.
"""

from tests.chaos.chaos import run_chaos
from tests.chaos.report import failure_report, summary
from tests.chaos.run import Plan


def test_a_standby_takes_over_without_a_restart_of_any_node() -> None:
    plan = Plan(
        seed=20_261_124, kills=1, kinds=("restart-postgres",), nodes=2, pause_seconds=0.2, clients=8, flows=8, places=4
    )
    outcome = run_chaos("postgres-standby", plan, fast_start=True)
    assert not outcome.violations, summary("postgres-standby", outcome) + "\n" + failure_report(outcome)
    assert [fault.kind for fault in outcome.journal.faults] == ["restart-postgres"]
    assert outcome.journal.unanswered, "no request met the database that was away"
