"""The order in which the writer takes waiting items."""

import asyncio
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.engine.commit.batch_items import Envelope, Item, Write
from flowserver.engine.commit.fair_queue import BATCH_MAX, CONTINUING_STEPS, DIVIDED_MIN, SHARED_BATCHES, FairQueue
from flowserver.machine.messages import Continue, Start, Stop, TimerFired
from flowserver.store.executions.new_executions import NewExecution


@pytest.fixture
def queue() -> FairQueue:
    return FairQueue()


def tell(execution_id: str, number: int = 0) -> Item:
    return Envelope(execution_id, TimerFired(1, number))


def stop(execution_id: str, number: int = 0) -> Item:
    return Envelope(execution_id, Stop(str(number)))


def start(name: str) -> Item:
    return Envelope(name, Start(), NewExecution(name, "f", name, "", {}))


def is_stop(item: Item) -> bool:
    return isinstance(item, Envelope) and isinstance(item.message, Stop)


def going_on(execution_id: str) -> Item:
    return Envelope(execution_id, Continue())


def put(queue: FairQueue, *items: Item, by_caller: bool = False) -> None:
    for item in items:
        queue.put((item, asyncio.Future(loop=_LOOP)), by_caller=by_caller)


_LOOP = asyncio.new_event_loop()
_LOOP.close()  # a future needs a loop, which never runs


def batch(queue: FairQueue, answered: int = BATCH_MAX, *, steps: int = 0, exceeded_memory: bool = False) -> list[Item]:
    """Take a batch, of which the first `answered` items are answered."""
    taken = queue.take()
    queue.answered(min(answered, len(taken)), continued_steps=steps, exceeded_memory=exceeded_memory)
    return [item for item, _ in taken]


def test_running_executions_go_before_callers_who_have_their_share() -> None:
    own, asked = [Write(print) for _ in range(5)], [Write(print) for _ in range(3)]
    queue = FairQueue(4)
    put(queue, *asked, by_caller=True)
    put(queue, *own)
    assert queue.requested == 3
    assert batch(queue) == [*own[:3], asked[0]]
    assert batch(queue) == [*own[3:], *asked[1:]]
    assert not batch(queue)


def test_no_execution_is_served_twice_while_another_waits(queue: FairQueue) -> None:
    put(queue, *(tell("much", number) for number in range(5)), tell("little"))
    assert batch(queue, answered=2)[:2] == [tell("much", 0), tell("little")]
    assert batch(queue) == [tell("much", number) for number in range(1, 5)]


def test_of_two_batches_only_one_has_continuing_executions_while_others_wait(queue: FairQueue) -> None:
    kinds = []
    for _ in range(4):
        put(queue, tell("outside"), going_on("loop"))
        kinds.append([type(item.message).__name__ for item in batch(queue) if isinstance(item, Envelope)])
    assert kinds == [["TimerFired", "Continue"], ["TimerFired"], ["TimerFired", "Continue", "Continue"], ["TimerFired"]]
    assert batch(queue) == [going_on("loop")]


def test_continuing_executions_share_batches_by_the_number_of_their_steps(queue: FairQueue) -> None:
    put(queue, *(going_on(str(number)) for number in range(3 * BATCH_MAX)))
    steps = (CONTINUING_STEPS + 1,) * 9 + (CONTINUING_STEPS,) * 3
    counts = [len(batch(queue, steps=each)) for each in steps]
    assert counts == [200, 100, 50, 25, 12, 6, 3, 1, 1, 1, 2, 4]


def test_the_writer_is_shared_until_continuing_executions_were_alone_for_a_while(queue: FairQueue) -> None:
    put(queue, *(going_on(str(number)) for number in range(3 * BATCH_MAX)))
    while len(batch(queue, steps=CONTINUING_STEPS + 1)) > 1:
        assert not queue.is_shared
    put(queue, tell("outside"))
    seen = []
    for _ in range(SHARED_BATCHES + 2):
        batch(queue, steps=CONTINUING_STEPS + 1)
        seen.append(queue.is_shared)
    assert seen == [True] * SHARED_BATCHES + [False, False]


def test_one_execution_does_not_share_the_writer_with_itself(queue: FairQueue) -> None:
    for number in range(SHARED_BATCHES + 1):
        put(queue, tell("a", number), tell("a", -number))
        batch(queue)
    assert not queue.is_shared
    put(queue, tell("a"), tell("b"))
    batch(queue)
    assert queue.is_shared


def test_unanswered_items_go_before_later_ones(queue: FairQueue) -> None:
    first = [tell(name, number) for number in range(2) for name in "abc"]
    put(queue, *first)
    assert batch(queue, answered=1) == first
    put(queue, tell("d"))
    assert batch(queue) == [tell("b"), tell("c"), tell("a", 1), tell("d"), tell("b", 1), tell("c", 1)]


def test_one_execution_with_many_items_does_not_delay_later_ones(queue: FairQueue) -> None:
    put(queue, *(tell("much", number) for number in range(100)))
    batch(queue, answered=5)
    put(queue, tell("little"))
    assert batch(queue, answered=5)[:3] == [tell("much", 5), tell("little"), tell("much", 6)]


@pytest.mark.parametrize("exceeded_memory", [False, True])
def test_no_item_waits_forever_when_only_the_first_of_each_batch_is_answered(exceeded_memory: bool) -> None:
    """Each batch answers one item, which is put into the queue again."""
    queue = FairQueue()
    asked, loop = tell("asked"), going_on("loop")
    put(queue, asked, by_caller=True)
    put(queue, loop)
    put(queue, *(tell(str(number)) for number in range(BATCH_MAX)))
    answered = []
    for _ in range(9):
        item = batch(queue, answered=1, exceeded_memory=exceeded_memory)[0]
        put(queue, item, by_caller=item == asked)
        answered.append(item)
    own = [item for item in answered if item not in (asked, loop)]
    assert own == [tell(str(number)) for number in range(len(own))]
    assert min(answered.count(asked), answered.count(loop), len(own)) >= 2


def test_batches_after_a_divided_one_are_small_at_first(queue: FairQueue) -> None:
    put(queue, *(tell(str(number)) for number in range(5 * BATCH_MAX)))
    counts = [len(batch(queue, answered=each)) for each in (50, 3, 200, 200, 200, 200, 200)]
    assert counts == [200, 50, DIVIDED_MIN, 32, 64, 128, 200]
    batch(queue, answered=1, exceeded_memory=True)
    assert [len(batch(queue)) for _ in range(3)] == [1, 2, 4]


def test_a_kind_is_owed_at_most_one_item(queue: FairQueue) -> None:
    put(queue, going_on("loop"), tell("own"))
    put(queue, tell("asked"), by_caller=True)
    batch(queue, answered=1, exceeded_memory=True)
    put(queue, tell("own", 2))
    answered = [batch(queue, answered=1, exceeded_memory=True)[0] for _ in range(3)]
    assert answered == [tell("asked"), going_on("loop"), tell("own", 2)]
    assert not batch(queue)


def test_callers_go_before_the_second_items_of_executions(queue: FairQueue) -> None:
    put(queue, *(tell("much", number) for number in range(100)))
    put(queue, *(tell(f"caller {number}") for number in range(3)), by_caller=True)
    assert batch(queue, answered=4)[:4] == [tell("much"), *(tell(f"caller {number}") for number in range(3))]


def test_access_keys_take_turns(queue: FairQueue) -> None:
    """A key with few requests does not wait for all those of a key that floods."""
    flood = [Write(print, caller="flooding") for _ in range(100)]
    few = [Write(print, caller="quiet") for _ in range(2)]
    put(queue, *flood, *few, by_caller=True)
    assert batch(queue, answered=5)[:5] == [flood[0], few[0], flood[1], few[1], flood[2]]
    assert batch(queue)[:2] == flood[3:5]


def test_items_that_exceeded_memory_together_are_not_taken_together_again(queue: FairQueue) -> None:
    put(queue, tell("a"), going_on("loop"))
    assert len(batch(queue, answered=1, exceeded_memory=True)) == 2
    put(queue, tell("a"), going_on("other"))
    assert [len(batch(queue)) for _ in range(4)] == [1, 1, 1, 0]


def test_a_batch_divided_by_bytes_never_leads_to_a_larger_one(queue: FairQueue) -> None:
    put(queue, *(tell(str(number)) for number in range(40)))
    batch(queue, answered=1, exceeded_memory=True)
    batch(queue)
    batch(queue, answered=1)
    assert len(batch(queue)) <= 2


def test_an_execution_that_also_continues_does_not_share_the_writer_with_itself(queue: FairQueue) -> None:
    for number in range(SHARED_BATCHES + 1):
        put(queue, tell("a", number))
        batch(queue)
        put(queue, going_on("a"))
        batch(queue)
    assert not queue.is_shared


@given(st.randoms(use_true_random=False))
def test_every_item_is_answered_once_and_in_the_order_of_its_queue(random: Random) -> None:
    queue, waiting, number = FairQueue(random.choice([1, 2, BATCH_MAX])), dict[tuple[str, str], list[int]](), 0
    for _ in range(60):
        for _ in range(random.choice([0, 0, 1, 2, 5])):
            kind, execution_id, number = random.choice("oag"), random.choice("abc"), number + 1
            item = going_on(execution_id) if kind == "g" else tell(execution_id, number)
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
        queue.answered(count, exceeded_memory=count < len(taken) and random.random() < 0.4)
        assert len(queue) == sum(map(len, waiting.values()))


@given(st.randoms(use_true_random=False))
def test_stops_come_first_and_each_item_is_answered_once_in_order(random: Random) -> None:
    """Batches answer all their stops and at least one more item, unless they exceed memory."""
    queue, waiting, number = FairQueue(random.choice([1, 2, BATCH_MAX])), dict[tuple[str, str, bool], list[Item]](), 0
    for turn in range(80):
        for _ in range(random.choice([0, 0, 1, 2, 5]) if turn < 40 else 0):
            kind, execution_id, number = random.choice("stgn"), random.choice("abc"), number + 1
            item = stop(execution_id, number) if kind == "s" else tell(execution_id, number)
            item = going_on(execution_id) if kind == "g" else start(f"new {number}") if kind == "n" else item
            by_caller = kind == "n" or random.random() < 0.5
            put(queue, item, by_caller=by_caller)
            waiting.setdefault((kind, execution_id, by_caller), []).append(item)
        taken = [item for item, _ in queue.take()]
        stops = [item for item in taken if is_stop(item)]
        assert taken[: len(stops)] == stops
        exceeded_memory = len(taken) > 1 and random.random() < 0.3
        count = len(taken) // 2 if exceeded_memory else random.randint(min(len(stops) + 1, len(taken)), len(taken))
        for item in taken[:count]:
            assert any(line[:1] == [item] and line.pop(0) for line in waiting.values())
        queue.answered(count, exceeded_memory=exceeded_memory)
        assert len(queue) == sum(map(len, waiting.values()))
    while taken := queue.take():
        count = min(len(taken), sum(is_stop(item) for item, _ in taken) + 1)
        queue.answered(count)
        for item, _ in taken[:count]:
            assert any(line[:1] == [item] and line.pop(0) for line in waiting.values())
    assert not any(waiting.values())


def test_a_stop_stays_behind_the_start_of_its_execution(queue: FairQueue) -> None:
    put(queue, tell("a"), start("b"), stop("b"), stop("a"))
    assert batch(queue) == [stop("a"), tell("a"), start("b"), stop("b")]


def test_a_constant_stream_of_stops_does_not_delay_other_items_forever() -> None:
    """Each batch answers its stops and one item, which are put into the queue again."""
    queue = FairQueue()
    asked, own, loop = tell("asked"), tell("own"), going_on("loop")
    put(queue, asked, by_caller=True)
    put(queue, own, loop)
    answered = []
    for number in range(9):
        put(queue, stop("stopped", number), by_caller=True)
        stopped, item = batch(queue, answered=2)[:2]
        assert is_stop(stopped)
        put(queue, item, by_caller=item == asked)
        answered.append(item)
    assert min(answered.count(item) for item in (asked, own, loop)) >= 2
