"""The order in which the writer takes what waits for it."""

import asyncio

import pytest

from flowserver.engine.batches import Envelope, Item, Write
from flowserver.engine.intake import BATCH_MAX, GOING_ON_STEPS, SHARED_BATCHES, Asked, Intake
from flowserver.machine.messages import Continue, Stop


@pytest.fixture
def intake() -> Intake:
    return Intake()


def stop(execution_id: str, number: int = 0) -> Item:
    return Envelope(execution_id, Stop(str(number), ""))


def going_on(execution_id: str) -> Item:
    return Envelope(execution_id, Continue())


def put(intake: Intake, *items: Item, by_caller: bool = False) -> None:
    for item in items:
        intake.put((item, asyncio.Future(loop=_LOOP)), by_caller=by_caller)


_LOOP = asyncio.new_event_loop()
_LOOP.close()  # nothing runs in it; a future wants one


def items(taken: list[Asked]) -> list[Item]:
    return [item for item, _ in taken]


def test_what_runs_goes_before_what_is_asked_for_which_has_its_share(intake: Intake) -> None:
    own, asked = [Write(print) for _ in range(5)], [Write(print) for _ in range(3)]
    put(intake, *asked, by_caller=True)
    put(intake, *own)
    assert intake.asked == 3
    assert items(intake.take(4)) == [*own[:3], asked[0]]
    assert items(intake.take(4)) == [*own[3:], *asked[1:]]
    assert not intake.take(4)


def test_no_execution_is_served_twice_while_another_waits(intake: Intake) -> None:
    put(intake, *(stop("much", number) for number in range(5)), stop("little"))
    assert items(intake.take(2)) == [stop("much", 0), stop("little")]
    assert items(intake.take()) == [stop("much", number) for number in range(1, 5)]


def test_of_two_batches_only_one_has_executions_that_go_on_while_others_wait(intake: Intake) -> None:
    kinds = []
    for _ in range(4):
        put(intake, stop("outside"), going_on("loop"))
        kinds.append([type(item.message).__name__ for item in items(intake.take()) if isinstance(item, Envelope)])
    assert kinds == [["Stop", "Continue"], ["Stop"], ["Stop", "Continue", "Continue"], ["Stop"]]
    assert items(intake.take()) == [going_on("loop")]


def test_the_more_steps_they_make_the_fewer_go_on_at_once(intake: Intake) -> None:
    put(intake, *(going_on(str(number)) for number in range(3 * BATCH_MAX)))
    counts = []
    for steps in (GOING_ON_STEPS + 1,) * 9 + (GOING_ON_STEPS,) * 3:
        counts.append(len(intake.take()))
        intake.went_on(steps)
    assert counts == [200, 100, 50, 25, 12, 6, 3, 1, 1, 1, 2, 4]


def test_the_writer_is_shared_until_executions_that_go_on_were_alone_for_a_while(intake: Intake) -> None:
    put(intake, *(going_on(str(number)) for number in range(SHARED_BATCHES + 2)))
    intake.went_on(GOING_ON_STEPS + 1)
    for _ in range(9):
        intake.went_on(GOING_ON_STEPS + 1)  # one at a time from now on
    assert not intake.is_shared
    put(intake, stop("outside"))
    seen = []
    for _ in range(SHARED_BATCHES + 1):
        intake.take()
        seen.append(intake.is_shared)
    assert seen == [True] * SHARED_BATCHES + [False]
