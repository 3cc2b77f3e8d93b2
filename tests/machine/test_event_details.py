"""What folds read of an event's detail, whichever form it has."""

from dataclasses import dataclass

import pytest

from flowserver.base.json_values import InvalidJson, JsonObject
from flowserver.machine.event_details import Facts, facts_of, is_in


@dataclass(frozen=True)
class Recorded:
    detail: str | JsonObject | Facts
    event_id: int = 1
    schedule_event_id: int = 0
    type: str = "StepExited"
    step_name: str = "s"
    time_ms: int = 0


@pytest.mark.parametrize("detail", ['{"index": 3, "cancelled": null}', {"index": 3, "cancelled": None}])
def test_a_detail_and_its_text_say_the_same(detail: str | JsonObject) -> None:
    facts = facts_of(Recorded(detail))
    assert (facts.index, facts.error) == (3, None)
    assert is_in(facts.cancelled)
    assert not is_in(facts.redriven)
    assert facts_of(Recorded(facts)) is facts


@pytest.mark.parametrize("text", ["[1]", "null", '"text"'])
def test_a_detail_that_is_no_object_says_nothing(text: str) -> None:
    assert facts_of(Recorded(text)) == Facts()


@pytest.mark.parametrize("text", ["{", "", '{"index": 1}}', '{"error":' * 100_000])
def test_a_damaged_text_is_an_error(text: str) -> None:
    with pytest.raises(InvalidJson):
        facts_of(Recorded(text))
