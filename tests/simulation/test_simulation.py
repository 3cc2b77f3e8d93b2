"""A short run of the simulation: under faults, random flows end as the reference says, and planted bugs are found."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Integer, bindparam, update

from flowserver.base.limits import Limits
from flowserver.engine.commit import batch
from flowserver.engine.commit.batch import Batch
from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.commit.batch_starts import Starts
from flowserver.machine.messages import RetryLostCall
from flowserver.machine.schedules.state import Schedule
from flowserver.machine.steps import task
from flowserver.store.executions import kept_scopes, redriving, saving, saving_headers
from flowserver.store.schedules import due_schedules
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.schema.tables import executions
from tests.simulation import schedules as ticks
from tests.simulation.case import CASES_PER_WORLD
from tests.simulation.fault_rates import CALM, EAGER, FaultRates
from tests.simulation.report import run_worlds

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Silence the log: batches that fail and are split are expected here."""
    logger = logging.getLogger("flowserver")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


def test_injected_faults_change_no_result() -> None:
    summary = run_worlds(6, range(2), share=0.3)
    assert summary.failure is None, summary.failure
    assert summary.executions > CASES_PER_WORLD / 2
    cut_short = summary.ends["Stopped"] + summary.ends["TimedOut"]
    assert min(summary.ends["Succeeded"], summary.ends["Failed"], cut_short) > 0
    for count in (
        "redriven",
        "waited for a redrive",
        "started over while it waited",
        "crash before",
        "crash after",
        "error, but durable",
        "lost calls",
        "conflicts",
        "lost leases",
    ):
        assert summary.counts[count] > 0, count


def test_a_seed_replays_exactly() -> None:
    one, other = run_worlds(3, range(1), share=0.2), run_worlds(3, range(1), share=0.2)
    assert one.failure is None, one.failure
    assert str(one) == str(other)


def test_a_run_without_faults_repairs_nothing() -> None:
    summary = run_worlds(5, range(1), CALM, share=0.2)
    assert summary.failure is None, summary.failure
    assert summary.counts["lost calls"] == 0


@pytest.mark.parametrize("limits", [Limits(events_max=25), Limits(live_scopes_max=4), Limits(step_data_bytes_max=120)])
def test_every_limit_ends_an_execution_cleanly(limits: Limits) -> None:
    """The reference knows no limits, but all checks after every commit apply."""
    summary = run_worlds(4, range(1), EAGER, limits=limits, share=0.1)
    assert summary.failure is None, summary.failure
    assert summary.counts["FnF.RuntimeError"] > 5


# Bugs that the simulation must find


def _skip_the_version_check(patch: pytest.MonkeyPatch) -> None:
    fence = update(executions).where(executions.c.execution_id == saving_headers.bindparam("b_id"))
    fence = fence.where(saving_headers.bindparam("b_version", type_=executions.c.version.type) > 0)
    patch.setattr(
        saving_headers,
        "_UPDATE_HEADER",
        fence.values({executions.c.version: saving_headers.literal_column("version + 1")}),
    )


def _skip_the_lease_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Batch, "_is_leased", lambda *_: True)


def _drop_lost_calls(patch: pytest.MonkeyPatch) -> None:
    original: Callable[[Batch, Envelope], Any] = Batch._tell

    def tell(self: Batch, envelope: Envelope) -> Any:
        if isinstance(envelope.message, RetryLostCall):
            return batch.Receipt(batch.ReceiptKind.STALE)
        return original(self, envelope)

    patch.setattr(Batch, "_tell", tell)
    patch.setattr(ticks, "SCHEDULES", 0)  # a world whose ticks are in the future runs long before it counts as stuck


def _skip_clear_callback(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(batch, "clear_callbacks", lambda *_: None)


def _lose_continuations(patch: pytest.MonkeyPatch) -> None:
    original = Batch.run

    def run(self: Batch, items: Any) -> Any:
        result = original(self, items)
        result.continuing.clear()
        return result

    patch.setattr(Batch, "run", run)


def _lose_a_scope(patch: pytest.MonkeyPatch) -> None:
    original = saving._save_scopes

    def save(connection: Connection, batch: Any, node_id: str) -> None:
        for changes in batch:
            if len(changes.touched) > 2:
                changes.touched.pop()
        original(connection, batch, node_id)

    patch.setattr(saving, "_save_scopes", save)


def _keep_no_changed_scope(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(kept_scopes, "_changed", lambda *_: iter(()))


def _resume_with_old_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(redriving, "take_kept", lambda *_: None)


def _skip_the_turn_check(patch: pytest.MonkeyPatch) -> None:
    """Two nodes decide on the same tick, and both start it."""
    statement = update(schedules).where(schedules.c.schedule_id == bindparam("b_id"))
    patch.setattr(due_schedules, "_SAVE", statement.where(bindparam("b_version", type_=Integer()) >= 0))
    patch.setattr(Starts, "_takes_turn", _take_any_turn)


def _take_any_turn(starts: Starts, execution_id: str, before: Schedule, changed: Schedule) -> bool:
    starts._schedules[execution_id] = changed
    return True


def _never_retry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(task, "choose_retry", lambda *_: None)


@pytest.mark.parametrize(
    ("plant_bug", "fault_rates"),
    [
        (_skip_the_version_check, None),
        (_skip_the_lease_check, None),
        (_drop_lost_calls, None),
        (_skip_clear_callback, None),
        (_skip_the_turn_check, None),
        (_lose_continuations, CALM),
        (_lose_a_scope, None),
        (_never_retry, CALM),
        (_keep_no_changed_scope, None),
        (_resume_with_old_waits, None),
    ],
)
def test_a_bug_is_reported_with_its_seed(
    plant_bug: Callable[[pytest.MonkeyPatch], None], fault_rates: FaultRates | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_bug(monkeypatch)
    story = run_worlds(3, range(16), fault_rates, share=0.2).failure
    assert story is not None
    assert "python -m tests.simulation --seed 3 --only" in story
