"""The scopes that ended executions keep for a redrive, read back."""

from types import SimpleNamespace

import pytest

from flowserver.store.executions.kept_scopes import kept_scope

ROW = {
    "scope_id": 1,
    "parent_id": None,
    "list_id": 0,
    "item": 0,
    "step_index": 1,
    "entered_event_id": 2,
    "attempt": 0,
    "option": None,
    "child_wait": None,
    "next_item": 3,
    "open_items": 1,
    "local": "{}",
    "has_failed": 0,
}


@pytest.mark.parametrize(("step_input", "counts"), [(None, (0, 0)), ('{"a": 1}', (3, 1))])
def test_a_scope_between_two_steps_waits_for_no_join(step_input: str | None, counts: tuple[int, int]) -> None:
    scope = kept_scope(SimpleNamespace(**ROW, step_input=step_input))
    assert (scope.next_item, scope.open_items) == counts
