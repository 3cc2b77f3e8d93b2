"""The text of a plan by `executions redrive --dry-run`."""

from typing import Any

from flowserver.cli.remote.redrive_plans import shown_plan, steps_after
from flowserver.client.results import Iterations, Step


def _plan(**changes: Any) -> dict[str, Any]:
    steps = [{"path": "pack[7].label", "why": "failed"}]
    steps += [{"path": f"pack[{number}].label", "why": "aborted"} for number in range(8, 12)]
    return {
        "redrivable": True, "reasons": [], "againCount": 100, "failedCount": 1, "abortedCount": 99,
        "callsAgainCount": 100, "again": steps, "kept": [{"step": "charge", "times": 1}, {"step": "label", "times": 7}],
    } | changes  # fmt: skip


def test_failed_and_aborted_iterations_are_distinguished() -> None:
    assert shown_plan("order/e", _plan()).splitlines() == [
        "order/e",
        "  Would run again: 1 failed (pack[7].label); "
        "99 aborted (pack[8].label, pack[9].label, pack[10].label and 96 more).",
        "  Calls made again, with their idempotency keys: 100.",
        "  Kept: charge, label (7 times).",
    ]


def test_a_requested_step_is_neither() -> None:
    asked = _plan(againCount=1, failedCount=0, abortedCount=0, callsAgainCount=0, kept=[])
    asked["again"] = [{"path": "charge", "why": "asked"}]
    again = "order/e\n  Would run again: charge{}.\n  Kept: nothing."
    assert shown_plan("order/e", asked) == again.format("")
    loop = Iterations(total=300, done=299, failed=1, running=0)
    steps = [_step("reserve"), _step("charge"), _step("pack", iterations=loop), _step("pack[].label"), _step("ship")]
    after = steps_after(steps, "charge")
    assert shown_plan("order/e", asked, after) == again.format(" and what comes after it: pack (300 iterations), ship")
    assert [*steps_after(steps, "ship"), *steps_after(steps, "none")] == []


def _step(path: str, iterations: Iterations | None = None) -> Step:
    return Step(path=path, status="Succeeded", first="", last="", iterations=iterations)


def test_kept_steps_that_were_undone_are_named() -> None:
    kept = [{"step": "Charge", "times": 1, "undoneBy": "Refund"}, {"step": "Note", "times": 1, "undoneBy": None}]
    assert shown_plan("order/e", _plan(kept=kept)).splitlines()[-2:] == [
        "  Kept: Charge, Note.",
        "  Kept, although undone since: Charge (by Refund).",
    ]
