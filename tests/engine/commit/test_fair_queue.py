"""The order in which the writer takes what waits for it."""

import asyncio

import pytest

from flowserver.engine.commit.batch import Envelope, Item, Write
from flowserver.engine.commit.fair_queue import BATCH_MAX, DIVIDED_MIN, GOING_ON_STEPS, SHARED_BATCHES, Intake
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


def batch(intake: Intake, answered: int = BATCH_MAX, *, steps: int = 0, was_too_much: bool = False) -> list[Item]:
    """What is taken, of which so many are answered."""
    taken = intake.take()
    intake.answered(min(answered, len(taken)), steps_gone_on=steps, was_too_much=was_too_much)
    return [item for item, _ in taken]


def test_what_runs_goes_before_what_is_asked_for_which_has_its_share() -> None:
    own, asked = [Write(print) for _ in range(5)], [Write(print) for _ in range(3)]
    intake = Intake(4)
    put(intake, *asked, by_caller=True)
    put(intake, *own)
    assert intake.asked == 3
    assert batch(intake) == [*own[:3], asked[0]]
    assert batch(intake) == [*own[3:], *asked[1:]]
    assert not batch(intake)


def test_no_execution_is_served_twice_while_another_waits(intake: Intake) -> None:
    put(intake, *(stop("much", number) for number in range(5)), stop("little"))
    assert batch(intake, answered=2)[:2] == [stop("much", 0), stop("little")]
    assert batch(intake) == [stop("much", number) for number in range(1, 5)]


def test_of_two_batches_only_one_has_executions_that_go_on_while_others_wait(intake: Intake) -> None:
    kinds = []
    for _ in range(4):
        put(intake, stop("outside"), going_on("loop"))
        kinds.append([type(item.message).__name__ for item in batch(intake) if isinstance(item, Envelope)])
    assert kinds == [["Stop", "Continue"], ["Stop"], ["Stop", "Continue", "Continue"], ["Stop"]]
    assert batch(intake) == [going_on("loop")]


def test_the_more_steps_they_make_the_fewer_go_on_at_once(intake: Intake) -> None:
    put(intake, *(going_on(str(number)) for number in range(3 * BATCH_MAX)))
    steps = (GOING_ON_STEPS + 1,) * 9 + (GOING_ON_STEPS,) * 3
    counts = [len(batch(intake, steps=each)) for each in steps]
    assert counts == [200, 100, 50, 25, 12, 6, 3, 1, 1, 1, 2, 4]


def test_the_writer_is_shared_until_executions_that_go_on_were_alone_for_a_while(intake: Intake) -> None:
    put(intake, *(going_on(str(number)) for number in range(3 * BATCH_MAX)))
    while len(batch(intake, steps=GOING_ON_STEPS + 1)) > 1:
        assert not intake.is_shared
    put(intake, stop("outside"))
    seen = []
    for _ in range(SHARED_BATCHES + 2):
        batch(intake, steps=GOING_ON_STEPS + 1)
        seen.append(intake.is_shared)
    assert seen == [True] * (SHARED_BATCHES + 1) + [False]


def test_one_execution_does_not_share_the_writer_with_itself(intake: Intake) -> None:
    for number in range(SHARED_BATCHES + 1):
        put(intake, stop("a", number), stop("a", -number))
        batch(intake)
    assert not intake.is_shared
    put(intake, stop("a"), stop("b"))
    batch(intake)
    assert intake.is_shared


def test_what_is_not_answered_goes_before_what_came_later(intake: Intake) -> None:
    first = [stop(name, number) for number in range(2) for name in "abc"]
    put(intake, *first)
    assert batch(intake, answered=1) == first
    put(intake, stop("d"))
    assert batch(intake) == [stop("b"), stop("c"), stop("a", 1), stop("d"), stop("b", 1), stop("c", 1)]


def test_one_execution_with_much_does_not_keep_what_comes_later_waiting(intake: Intake) -> None:
    put(intake, *(stop("much", number) for number in range(100)))
    batch(intake, answered=5)
    put(intake, stop("little"))
    assert batch(intake, answered=5)[:3] == [stop("much", 5), stop("little"), stop("much", 6)]


@pytest.mark.parametrize("was_too_much", [False, True])
def test_nothing_waits_for_ever_when_only_the_first_of_each_batch_is_answered(was_too_much: bool) -> None:
    """Each batch answers one item, and for each of them another like it comes."""
    intake = Intake()
    asked, loop = stop("asked"), going_on("loop")
    put(intake, asked, by_caller=True)
    put(intake, loop)
    put(intake, *(stop(str(number)) for number in range(BATCH_MAX)))
    answered = []
    for _ in range(9):
        item = batch(intake, answered=1, was_too_much=was_too_much)[0]
        put(intake, item, by_caller=item == asked)
        answered.append(item)
    own = [item for item in answered if item not in (asked, loop)]
    assert own == [stop(str(number)) for number in range(len(own))]
    assert min(answered.count(asked), answered.count(loop), len(own)) >= 2


def test_after_a_divided_batch_the_next_ones_are_small_at_first(intake: Intake) -> None:
    put(intake, *(stop(str(number)) for number in range(5 * BATCH_MAX)))
    counts = [len(batch(intake, answered=each)) for each in (50, 3, 200, 200, 200, 200, 200)]
    assert counts == [200, 50, DIVIDED_MIN, 32, 64, 128, 200]
    batch(intake, answered=1, was_too_much=True)
    assert [len(batch(intake)) for _ in range(3)] == [1, 2, 4]
