"""When a turn orders the sub-flow of a `sync` step to be stopped."""

import pytest

from flowserver.machine.commands import CancelInvocation, StopInvocation, StopSubFlow
from flowserver.machine.messages import Failure, Stop, Success
from flowserver.machine.state import WaitKind
from tests.support.flows import flow
from tests.support.world import World

STARTED = Success({"Name": "c"})


def started(*attributes: str, pattern: str = "sync") -> World:
    more = "".join(f", {each}" for each in (f"pattern: {pattern}", *attributes))
    world = World(flow(f"- {{type: task, name: t, resourceArn: 'acs:fnf:::flow/f'{more}}}"))
    world.start()
    return world


def test_a_time_out_stops_the_sub_flow() -> None:
    world = started("timeoutSeconds: 7", "retry: [{errors: [FnF.TaskTimeout]}]")
    world.reply(STARTED)
    assert world.scope.wait is WaitKind.CHILD
    assert world.wake().commands == [StopSubFlow(1)]


def test_a_time_out_of_the_start_stops_a_possible_sub_flow() -> None:
    assert started("timeoutSeconds: 7").wake().commands == [CancelInvocation(1, 1), StopSubFlow(1)]


def test_a_start_that_seems_to_have_failed_stops_a_possible_sub_flow() -> None:
    world = started()
    turn = world.reply(Failure("FnF.RuntimeError"))
    assert StopSubFlow(1) in turn.commands


def test_an_end_from_outside_stops_all() -> None:
    world = started()
    world.reply(STARTED)
    assert world.tell(Stop()).commands == [StopInvocation()]


def test_a_sub_flow_that_has_ended_is_not_stopped() -> None:
    world = started()
    world.reply(STARTED)
    assert not any(isinstance(each, StopSubFlow) for each in world.report(Failure("E")).commands)


@pytest.mark.parametrize("pattern", ["requestResponse", "waitForCallback"])
def test_other_sub_flows_are_not_stopped(pattern: str) -> None:
    world = started("timeoutSeconds: 7", pattern=pattern)
    assert world.wake().commands == [CancelInvocation(1, 1)]


def test_the_order_has_the_life_cycle_of_the_step() -> None:
    [call] = started("childLifecycle: independent").calls
    assert call.child_lifecycle == "independent"
