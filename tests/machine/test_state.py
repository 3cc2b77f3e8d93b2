"""An execution finds the scopes that a step has opened."""

import pytest

from flowserver.machine.state import Execution, Scope


@pytest.mark.parametrize("looked_before", [False, True])
def test_the_scopes_that_a_step_opened_are_found_in_the_order_of_their_items(*, looked_before: bool) -> None:
    execution = Execution("id", "flow", "name", {}, 0, 0)
    parent, gone = Scope(1, None, 0, 0, 0), Scope(4, 1, 1, 2, 1)
    second, first = Scope(2, 1, 1, 1, 1), Scope(3, 1, 1, 0, 1)
    execution.open_scope(parent)
    if looked_before:
        assert execution.opened_by(parent) == []
    for scope in (second, first, gone):
        execution.open_scope(scope)
    execution.drop_scope(gone)
    assert execution.opened_by(parent) == [first, second]
    assert execution.opened_by(first) == []
