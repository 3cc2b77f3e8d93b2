"""A short run of the simulation: random flows under disorder come to what the reference says."""

from tests.simulation.report import run_cases
from tests.simulation.simulation import EAGER


def test_disorder_changes_no_result() -> None:
    summary = run_cases(1, range(600))
    assert summary.failure is None, summary.failure
    assert min(summary.ends[status] for status in ("Succeeded", "Failed", "Stopped", "TimedOut")) > 0


def test_equal_arguments_give_equal_turns_and_no_change_goes_unannounced() -> None:
    """Every turn of these is made twice, and the execution compared with its rows after each."""
    summary = run_cases(2, range(150), EAGER)
    assert summary.failure is None, summary.failure


def test_a_seed_replays_exactly() -> None:
    assert str(run_cases(3, range(20))) == str(run_cases(3, range(20)))
