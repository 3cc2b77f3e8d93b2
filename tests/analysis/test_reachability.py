"""What `prove` calls possible happens in a run that Hypothesis finds, but for what is listed here with its reason.

`python -m tests.analysis reachability` searches in more random flows.
"""

import pytest

from tests.analysis.corpus import BEHAVIOURAL, CORRECT, Entry, entries
from tests.analysis.reachability import LIMITS, NOT_FOUND, Search, search, search_seeds

LEFT = {
    "broad-option-first: took Level 1": "an earlier option holds whenever this one does: that is the bug",
    "long-listing: took IsLong -1": "only after 4,000 events, and these runs end after 500",
}
MORE, MORE_OF_REAL = 80, 300
"""Runs for each goal that the first do not reach: in a random flow, and in one of the corpus."""


@pytest.mark.parametrize("flow", [*entries(CORRECT), *entries(BEHAVIOURAL)], ids=lambda flow: flow.name)
def test_all_goals_of_a_flow_are_reached(flow: Entry) -> None:
    has_left = any(goal.startswith(f"{flow.name}:") for goal in LEFT)
    found = search(flow.name, flow.text, LIMITS, MORE if has_left else MORE_OF_REAL)
    assert set(found.left) <= set(LEFT)
    assert found.share == 1 or found.left


def test_most_goals_of_random_flows_are_reached() -> None:
    found = search_seeds(range(7), MORE)
    assert found.goals.total() > 100
    assert found.share > 0.75, str(found)
    unexplained = [goal for goal, reason in found.left.items() if reason == NOT_FOUND]
    assert len(unexplained) < found.goals.total() / 20, unexplained


def test_a_goal_that_nothing_reaches_is_left() -> None:
    text = """version: v1
type: flow
steps:
  - {type: pass, name: Set, outputMappings: [{target: a, source: 1}]}
  - {type: choice, name: Is, choices: [{condition: $.a == 2, goto: Never}], default: {}}
  - {type: succeed, name: Done}
  - {type: pass, name: Never}
"""
    found: Search = search("flow", text, LIMITS, MORE)
    assert found.left == {"flow: took Is 0": "a constant decides"}
    assert found.reached["entered"] == 3
