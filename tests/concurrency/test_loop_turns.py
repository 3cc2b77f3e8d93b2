"""Tasks that give way take turns on the event loop: one continues in each round, however many there are."""

import asyncio

from flowserver.concurrency.loop_turns import LoopTurns


async def _rounds_until(done: asyncio.Event) -> int:
    rounds = 0
    while not done.is_set():
        await asyncio.sleep(0)
        rounds += 1
    return rounds


async def test_one_of_many_continues_in_each_round() -> None:
    turns, order, done = LoopTurns(lambda: 0), list[int](), asyncio.Event()

    async def work(number: int) -> None:
        for _ in range(2):
            await turns.take()
            order.append(number)

    async def all_work() -> None:
        await asyncio.gather(*map(work, range(20)))
        done.set()

    working = asyncio.create_task(all_work())
    assert await _rounds_until(done) >= 40
    await working
    assert order == [*range(20)] * 2


async def test_a_task_that_was_cancelled_holds_up_no_other() -> None:
    turns = LoopTurns(lambda: 0)
    given_up = [asyncio.create_task(turns.take()) for _ in range(3)]
    waiting = asyncio.create_task(turns.take())
    await asyncio.sleep(0)
    for task in given_up[1:]:
        task.cancel()
    await waiting
    last = asyncio.create_task(turns.take())
    await asyncio.sleep(0)
    last.cancel()
    await asyncio.gather(last, return_exceptions=True)
    await turns.take()


class Pauses:
    """Counts the pauses before turns."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.seconds


async def test_tasks_that_were_cancelled_take_no_turns() -> None:
    pauses = Pauses(0)
    turns = LoopTurns(pauses)
    given_up = [asyncio.create_task(turns.take()) for _ in range(100)]
    await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    await turns.take()
    assert pauses.asked <= 2


async def test_each_turn_comes_after_a_pause() -> None:
    """Longer pauses hold the turns up while urgent work goes on."""
    pauses = Pauses(0.0001)
    turns = LoopTurns(pauses)
    await asyncio.gather(*(turns.take() for _ in range(5)))
    assert pauses.asked == 5


def test_turns_that_a_stopped_loop_left_hold_up_no_other() -> None:
    turns = LoopTurns(lambda: 0)

    async def leave() -> None:
        asyncio.create_task(turns.take())  # noqa: RUF006 # the loop ends before its turn
        await asyncio.sleep(0)

    for _ in range(2):
        asyncio.run(leave())
    asyncio.run(turns.take())
