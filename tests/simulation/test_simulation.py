"""A short run of the simulation: random flows under disorder come to what the reference says."""

from dataclasses import replace

import pytest

from flowserver.base.limits import Limits
from flowserver.machine.steps import task
from tests.simulation.case import make_case
from tests.simulation.report import run_cases
from tests.simulation.simulation import EAGER, Simulation


def test_disorder_changes_no_result() -> None:
    summary = run_cases(1, range(400))
    assert summary.failure is None, summary.failure
    assert min(summary.ends[status] for status in ("Succeeded", "Failed", "Stopped", "TimedOut")) > 0


def test_equal_arguments_give_equal_turns_and_no_change_goes_unannounced() -> None:
    """Every turn of these is made twice, and the execution compared with its rows after each."""
    summary = run_cases(2, range(150), EAGER)
    assert summary.failure is None, summary.failure


def test_a_seed_replays_exactly() -> None:
    assert str(run_cases(3, range(20))) == str(run_cases(3, range(20)))


@pytest.mark.parametrize("limits", [Limits(events_max=25), Limits(live_scopes_max=4), Limits(step_data_bytes_max=120)])
def test_every_limit_ends_an_execution_in_good_order(limits: Limits) -> None:
    """What the reference does not know of; what must hold after every turn must hold all the same."""
    broken = 0
    for number in range(60):
        simulation = Simulation(replace(make_case(4, number), limits=limits), EAGER)
        simulation.play()
        broken += simulation.execution.error == "FnF.RuntimeError"
    assert broken > 10


def test_a_mistake_of_the_machine_is_found_and_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "choose_retry", lambda *_: None)
    story = run_cases(1, range(600)).failure
    assert story is not None
    assert "python -m tests.simulation --seed 1 --only" in story
    assert "=> Start(): APPLIED" in story
