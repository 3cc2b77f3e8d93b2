"""What the analysis says of a flow is true in every run. `python -m tests.analysis soundness` makes far more runs."""

from collections.abc import Callable
from typing import Any

import pytest

from flowserver.analysis import constants, data_flow, errors_and_retries, missing_data, time_and_loops, worst_case
from flowserver.analysis.rules import RULES
from flowserver.analysis.shapes import Document, Presence, join_documents
from flowserver.analysis.worst_case import Cost
from flowserver.language import reachability
from flowserver.language.arrows import Way
from flowserver.language.diagnostics import Severity
from tests.analysis.impossible import CLAIMED
from tests.analysis.soundness import Tally, check_flows

FLOWS = 300
RUNS = 4


@pytest.mark.parametrize("part", range(3))
def test_what_is_called_impossible_never_happens(part: int) -> None:
    tally = check_flows(range(part, FLOWS, 3), RUNS)
    assert tally.wrong == []
    assert min(tally.ends["Succeeded"], tally.ends["Failed"], tally.ends["TimedOut"]) > 20
    for rule in ("always-missing", "catch-never-matches", "retry-never-applies", "step-always-fails"):
        assert tally.exercised[rule] > 5, rule


def test_every_error_is_a_claim_that_runs_can_refute() -> None:
    assert {name for name, rule in RULES.items() if rule.severity is Severity.ERROR} <= CLAIMED


# Mistakes in the analysis that the runs must find


def _first(one: Document, _: Document) -> Document:
    return one


def _closed(one: Document, other: Document) -> Document:
    return Document(join_documents(one, other).parts, one.is_open and other.is_open)


def _always_found(*_: Any) -> tuple[Presence, Any]:
    return Presence.NEVER, data_flow.NULL


def _without_catches(arrows: Callable[..., Any]) -> Callable[..., Any]:
    return lambda steps, index: (each for each in arrows(steps, index) if each.way is not Way.CAUGHT)


def _without_unknown(after: Callable[..., constants.Known]) -> Callable[..., constants.Known]:
    return lambda *given: frozenset(each for each in (*after(*given), *given[3]) if each[1] is not None)


def _one_call_fewer(cost: Callable[..., Cost]) -> Callable[..., Cost]:
    def less(self: Any, step: Any) -> Cost:
        right = cost(self, step)
        return Cost(right.seconds, right.calls - 1, right.events, right.lists)

    return less


MISTAKES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a way is forgotten where two meet": lambda patch: patch.setattr(data_flow, "join_documents", _first),
    "unknown data has only the keys that are known": lambda patch: patch.setattr(data_flow, "join_documents", _closed),
    "what may be found is never found": lambda patch: patch.setattr(missing_data, "look_up", _always_found),
    "a caught error leads nowhere": lambda patch: patch.setattr(
        reachability, "arrows_from", _without_catches(reachability.arrows_from)
    ),
    "an output is merged under what is there": lambda patch: patch.setattr(
        data_flow, "overlaid", lambda below, above: Document({**above.parts, **below.parts}, below.is_open)
    ),
    "one name that an earlier rule names is enough": lambda patch: patch.setattr(
        errors_and_retries, "ALL_ERRORS", "E1"
    ),
    "the longest way is taken for the shortest": lambda patch: patch.setattr(
        time_and_loops, "heappop", lambda todo: todo.pop(todo.index(max(todo)))
    ),
    "a constant is in its key although another may be": lambda patch: patch.setattr(
        constants, "_after", _without_unknown(constants._after)
    ),
    "an attempt is not counted": lambda patch: patch.setattr(
        worst_case._Counting, "_of_task", _one_call_fewer(worst_case._Counting._of_task)
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MISTAKES[mistake](monkeypatch)
    found = Tally()
    for first in range(0, 900, 30):
        found.add(check_flows(range(first, first + 30), RUNS))
        if found.wrong:
            return
    pytest.fail(str(found))
