"""The order in which the writer takes what waits for it."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.engine.commit.fair_queue import BATCH_MAX, DIVIDED_MIN, GOING_ON_STEPS, SHARED_BATCHES, FairQueue
from flowserver.engine.commit.items import Envelope, Item, Write
from flowserver.machine.messages import Continue, Stop


@pytest.fixture
def queue() -> FairQueue:
    return FairQueue()


def stop(execution_id: str, number: int = 0) -> Item:
    return Envelope(execution_id, Stop(str(number), ""))


def going_on(execution_id: str) -> Item:
    return Envelope(execution_id, Continue())


def put(queue: FairQueue, *items: Item, by_caller: bool = False) -> None:
    for item in items:
        queue.put((item, asyncio.Future(loop=_LOOP)), by_caller=by_caller)


_LOOP = asyncio.new_event_loop()
_LOOP.close()  # nothing runs in it; a future wants one


def batch(queue: FairQueue, answered: int = BATCH_MAX, *, steps: int = 0, was_too_much: bool = False) -> list[Item]:
    """What is taken, of which so many are answered."""
    taken = queue.take()
    queue.answered(min(answered, len(taken)), steps_gone_on=steps, was_too_much=was_too_much)
    return [item for item, _ in taken]


def test_what_runs_goes_before_what_is_asked_for_which_has_its_share() -> None:
    own, asked = [Write(print) for _ in range(5)], [Write(print) for _ in range(3)]
    queue = FairQueue(4)
    put(queue, *asked, by_caller=True)
    put(queue, *own)
    assert queue.asked == 3
    assert batch(queue) == [*own[:3], asked[0]]
    assert batch(queue) == [*own[3:], *asked[1:]]
    assert not batch(queue)


def test_no_execution_is_served_twice_while_another_waits(queue: FairQueue) -> None:
    put(queue, *(stop("much", number) for number in range(5)), stop("little"))
    assert batch(queue, answered=2)[:2] == [stop("much", 0), stop("little")]
    assert batch(queue) == [stop("much", number) for number in range(1, 5)]


def test_of_two_batches_only_one_has_executions_that_go_on_while_others_wait(queue: FairQueue) -> None:
    kinds = []
    for _ in range(4):
        put(queue, stop("outside"), going_on("loop"))
        kinds.append([type(item.message).__name__ for item in batch(queue) if isinstance(item, Envelope)])
    assert kinds == [["Stop", "Continue"], ["Stop"], ["Stop", "Continue", "Continue"], ["Stop"]]
    assert batch(queue) == [going_on("loop")]


def test_the_more_steps_they_make_the_fewer_go_on_at_once(queue: FairQueue) -> None:
    put(queue, *(going_on(str(number)) for number in range(3 * BATCH_MAX)))
    steps = (GOING_ON_STEPS + 1,) * 9 + (GOING_ON_STEPS,) * 3
    counts = [len(batch(queue, steps=each)) for each in steps]
    assert counts == [200, 100, 50, 25, 12, 6, 3, 1, 1, 1, 2, 4]


def test_the_writer_is_shared_until_executions_that_go_on_were_alone_for_a_while(queue: FairQueue) -> None:
    put(queue, *(going_on(str(number)) for number in range(3 * BATCH_MAX)))
    while len(batch(queue, steps=GOING_ON_STEPS + 1)) > 1:
        assert not queue.is_shared
    put(queue, stop("outside"))
    seen = []
    for _ in range(SHARED_BATCHES + 2):
        batch(queue, steps=GOING_ON_STEPS + 1)
        seen.append(queue.is_shared)
    assert seen == [True] * SHARED_BATCHES + [False, False]


def test_one_execution_does_not_share_the_writer_with_itself(queue: FairQueue) -> None:
    for number in range(SHARED_BATCHES + 1):
        put(queue, stop("a", number), stop("a", -number))
        batch(queue)
    assert not queue.is_shared
    put(queue, stop("a"), stop("b"))
    batch(queue)
    assert queue.is_shared


def test_what_is_not_answered_goes_before_what_came_later(queue: FairQueue) -> None:
    first = [stop(name, number) for number in range(2) for name in "abc"]
    put(queue, *first)
    assert batch(queue, answered=1) == first
    put(queue, stop("d"))
    assert batch(queue) == [stop("b"), stop("c"), stop("a", 1), stop("d"), stop("b", 1), stop("c", 1)]


def test_one_execution_with_much_does_not_keep_what_comes_later_waiting(queue: FairQueue) -> None:
    put(queue, *(stop("much", number) for number in range(100)))
    batch(queue, answered=5)
    put(queue, stop("little"))
    assert batch(queue, answered=5)[:3] == [stop("much", 5), stop("little"), stop("much", 6)]


@pytest.mark.parametrize("was_too_much", [False, True])
def test_nothing_waits_for_ever_when_only_the_first_of_each_batch_is_answered(was_too_much: bool) -> None:
    """Each batch answers one item, and for each of them another like it comes."""
    queue = FairQueue()
    asked, loop = stop("asked"), going_on("loop")
    put(queue, asked, by_caller=True)
    put(queue, loop)
    put(queue, *(stop(str(number)) for number in range(BATCH_MAX)))
    answered = []
    for _ in range(9):
        item = batch(queue, answered=1, was_too_much=was_too_much)[0]
        put(queue, item, by_caller=item == asked)
        answered.append(item)
    own = [item for item in answered if item not in (asked, loop)]
    assert own == [stop(str(number)) for number in range(len(own))]
    assert min(answered.count(asked), answered.count(loop), len(own)) >= 2


def test_after_a_divided_batch_the_next_ones_are_small_at_first(queue: FairQueue) -> None:
    put(queue, *(stop(str(number)) for number in range(5 * BATCH_MAX)))
    counts = [len(batch(queue, answered=each)) for each in (50, 3, 200, 200, 200, 200, 200)]
    assert counts == [200, 50, DIVIDED_MIN, 32, 64, 128, 200]
    batch(queue, answered=1, was_too_much=True)
    assert [len(batch(queue)) for _ in range(3)] == [1, 2, 4]


def test_a_kind_that_is_owed_an_item_is_owed_one_only(queue: FairQueue) -> None:
    put(queue, going_on("loop"), stop("own"))
    put(queue, stop("asked"), by_caller=True)
    batch(queue, answered=1, was_too_much=True)
    put(queue, stop("own", 2))
    answered = [batch(queue, answered=1, was_too_much=True)[0] for _ in range(3)]
    assert answered == [stop("asked"), going_on("loop"), stop("own", 2)]
    assert not batch(queue)


def test_what_callers_ask_for_goes_before_the_second_items_of_executions(queue: FairQueue) -> None:
    put(queue, *(stop("much", number) for number in range(100)))
    put(queue, *(stop(f"caller {number}") for number in range(3)), by_caller=True)
    assert batch(queue, answered=4)[:4] == [stop("much"), *(stop(f"caller {number}") for number in range(3))]


def test_what_was_too_much_together_is_not_taken_together_again(queue: FairQueue) -> None:
    put(queue, stop("a"), going_on("loop"))
    assert len(batch(queue, answered=1, was_too_much=True)) == 2
    put(queue, stop("a"), going_on("other"))
    assert [len(batch(queue)) for _ in range(4)] == [1, 1, 1, 0]


def test_a_batch_divided_by_bytes_is_never_a_reason_for_a_larger_one(queue: FairQueue) -> None:
    put(queue, *(stop(str(number)) for number in range(40)))
    batch(queue, answered=1, was_too_much=True)
    batch(queue)
    batch(queue, answered=1)
    assert len(batch(queue)) <= 2


def test_an_execution_that_also_goes_on_does_not_share_the_writer_with_itself(queue: FairQueue) -> None:
    for number in range(SHARED_BATCHES + 1):
        put(queue, stop("a", number))
        batch(queue)
        put(queue, going_on("a"))
        batch(queue)
    assert not queue.is_shared


@given(st.randoms(use_true_random=False))
def test_every_item_is_answered_once_and_in_the_order_of_its_line(random: Random) -> None:
    queue, waiting, number = FairQueue(random.choice([1, 2, BATCH_MAX])), dict[tuple[str, str], list[int]](), 0
    for _ in range(60):
        for _ in range(random.choice([0, 0, 1, 2, 5])):
            kind, execution_id, number = random.choice("oag"), random.choice("abc"), number + 1
            item = going_on(execution_id) if kind == "g" else stop(execution_id, number)
            future: asyncio.Future[int] = asyncio.Future(loop=_LOOP)
            future.number = number  # type: ignore[attr-defined]
            queue.put((item, future), by_caller=kind == "a")
            waiting.setdefault((kind, execution_id), []).append(number)
        taken = queue.take()
        assert bool(taken) == any(waiting.values())
        count = random.randint(min(1, len(taken)), len(taken))
        for _, future in taken[:count]:
            line = next(line for line in waiting.values() if future.number in line)  # type: ignore[attr-defined]
            assert line.pop(0) == future.number  # type: ignore[attr-defined]
        queue.answered(count, was_too_much=count < len(taken) and random.random() < 0.4)
        assert len(queue) == sum(map(len, waiting.values()))
