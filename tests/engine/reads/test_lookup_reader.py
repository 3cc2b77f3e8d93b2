"""Small queries: those that arrive while the reader is busy share its next transaction, and all are answered."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import DBAPIError, OperationalError

from flowserver.base.errors import ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.base.request_context import RequestContext
from flowserver.engine.reads.lookup_reader import QUESTIONS_MAX, Question, Reader
from flowserver.store.sql.database import READERS_MAX, Database
from tests.engine.held_threads import Gate
from tests.support.postgres import cut_sessions

PENDING_MAX = 500


class WatchedDatabase(Database):
    """Counts the transactions that the reader begins; while `away`, none succeeds."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.tries = 0
        self.away = False

    @contextmanager
    def look(self) -> Iterator[Connection]:
        self.tries += 1
        if self.away:
            raise OperationalError("BEGIN", None, Exception("the database is away, as the test wants it"))
        with super().look() as connection:
            yield connection


@pytest.fixture
def watched(database_url: str) -> Iterator[WatchedDatabase]:
    database = WatchedDatabase(database_url)
    yield database
    database.close()


@pytest.fixture
async def reader(watched: WatchedDatabase) -> AsyncIterator[Reader]:
    reader = Reader(watched, Limits(pending_messages_max=PENDING_MAX))
    yield reader
    await reader.close()


def one(connection: Connection, number: int = 1) -> int:
    return int(connection.execute(select(number)).scalar_one())


def fail(error: BaseException) -> Question:
    def question(_: Connection) -> None:
        raise error

    return question


def nonsense(connection: Connection) -> None:
    connection.execute(text("SELECT nothing FROM nowhere"))


async def busy(reader: Reader) -> tuple[Gate, asyncio.Task[str]]:
    """Occupy the reader with a transaction that ends when the gate opens."""
    gate = Gate()
    task = asyncio.create_task(reader.ask(gate))
    await gate.reached.wait()
    return gate, task


async def ask(reader: Reader, *questions: Question, by_caller: bool = False) -> list[asyncio.Task[Any]]:
    """Submit them in order without waiting."""
    tasks = [asyncio.create_task(reader.ask(question, by_caller=by_caller)) for question in questions]
    await asyncio.sleep(0)
    return tasks


async def answers(tasks: list[asyncio.Task[Any]]) -> list[Any]:
    async with asyncio.timeout(20):
        return await asyncio.gather(*tasks, return_exceptions=True)


async def test_questions_asked_meanwhile_share_one_transaction(reader: Reader, watched: WatchedDatabase) -> None:
    gate, first = await busy(reader)
    tasks = await ask(reader, *(partial(one, number=number) for number in range(QUESTIONS_MAX)))
    gate.open()
    assert await answers(tasks) == list(range(QUESTIONS_MAX))
    assert await first == "through"
    assert watched.tries == 2


async def test_a_transaction_has_a_bounded_number_of_questions(reader: Reader, watched: WatchedDatabase) -> None:
    gate, _ = await busy(reader)
    tasks = await ask(reader, *[one] * (2 * QUESTIONS_MAX + 1))
    gate.open()
    assert await answers(tasks) == [1] * (2 * QUESTIONS_MAX + 1)
    assert watched.tries == 4


async def test_access_keys_take_turns(reader: Reader) -> None:
    gate, first = await busy(reader)
    answered: list[str] = []
    tasks = []
    for key in "aaab":
        with RequestContext() as request:
            request.key_id = key
            tasks += await ask(reader, lambda _, key=key: answered.append(key), by_caller=True)  # type: ignore[misc]
    gate.open()
    await answers([first, *tasks])
    assert answered == ["a", "b", "a", "a"]


async def test_a_question_fails_alone(reader: Reader, watched: WatchedDatabase) -> None:
    gate, _ = await busy(reader)
    tasks = await ask(reader, one, fail(ZeroDivisionError()), one)
    gate.open()
    assert list(map(str, await answers(tasks))) == ["1", "", "1"]
    assert isinstance(tasks[1].exception(), ZeroDivisionError)
    assert watched.tries == 2


async def test_an_error_of_the_database_divides_a_batch(reader: Reader, watched: WatchedDatabase) -> None:
    gate, _ = await busy(reader)
    tasks = await ask(reader, one, nonsense, one)
    gate.open()
    results = await answers(tasks)
    assert [results[0], results[2]] == [1, 1]
    assert isinstance(results[1], DBAPIError)
    assert watched.tries == 1 + 1 + 3


@pytest.mark.parametrize(("questions", "tries"), [(1, 1), (QUESTIONS_MAX, 3)])
async def test_a_database_that_is_down_is_tried_a_few_times(
    reader: Reader, watched: WatchedDatabase, questions: int, tries: int
) -> None:
    gate, _ = await busy(reader)
    tasks = await ask(reader, *[one] * questions)
    watched.away, watched.tries = True, 0
    gate.open()
    assert [type(result) for result in await answers(tasks)] == [OperationalError] * questions
    assert watched.tries == tries
    watched.away = False
    assert await reader.ask(one) == 1


async def test_questions_that_fail_alone_do_not_prevent_others(reader: Reader) -> None:
    """Even if their errors resemble those of a database that is down: it answers in between."""
    gate, _ = await busy(reader)
    broken = fail(OperationalError("SELECT", None, Exception("disk I/O error")))
    tasks = await ask(reader, broken, one, broken, one)
    gate.open()
    assert [type(result) for result in await answers(tasks)] == [OperationalError, int, OperationalError, int]


async def test_a_cut_session_fails_no_question(postgres_database: Database) -> None:
    reader = Reader(postgres_database, Limits())
    for questions in (1, 3):
        assert await reader.ask(one) == 1
        assert cut_sessions(postgres_database) > 0
        assert await answers(await ask(reader, *[one] * questions)) == [1] * questions
    await reader.close()


@pytest.mark.parametrize("odd", [StopIteration(), asyncio.CancelledError(), SystemExit(1), GeneratorExit()])
async def test_odd_exceptions_leave_no_question_waiting(reader: Reader, odd: BaseException) -> None:
    gate, _ = await busy(reader)
    tasks = await ask(reader, one, fail(odd), one)
    gate.open()
    results = await answers(tasks)
    assert [type(result) for result in results] == [int, RuntimeError, int]
    assert results[1].__cause__ is odd
    assert await reader.ask(one) == 1


async def test_a_reader_that_is_cancelled_leaves_no_question_waiting(reader: Reader) -> None:
    gate, first = await busy(reader)
    tasks = [first, *await ask(reader, *[one] * (QUESTIONS_MAX + 1))]
    [reading] = [task for task in asyncio.all_tasks() if task.get_name() == "reader"]
    reading.cancel()
    assert {type(result) for result in await answers(tasks)} == {RuntimeError}
    gate.open()
    assert await reader.ask(one) == 1


async def test_closing_answers_earlier_questions(reader: Reader) -> None:
    gate, first = await busy(reader)
    tasks = await ask(reader, *[one] * (QUESTIONS_MAX + 1))
    closing = asyncio.create_task(reader.close())
    await asyncio.sleep(0)
    [late] = await ask(reader, one)
    gate.open()
    await closing
    assert first.done()
    assert [task.result() for task in tasks] == [1] * (QUESTIONS_MAX + 1)
    for asked_after_close in (late, *await ask(reader, one)):
        with pytest.raises(ResourceThrottled):
            await asked_after_close


async def test_the_question_of_a_cancelled_caller_is_not_asked(reader: Reader, watched: WatchedDatabase) -> None:
    gate, _ = await busy(reader)
    asked: list[str] = []
    gone, stays = await ask(reader, lambda _: asked.append("gone"), lambda _: asked.append("stays"))
    gone.cancel()
    gate.open()
    await stays
    assert asked == ["stays"]


async def test_a_caller_may_be_cancelled_during_its_answer(reader: Reader) -> None:
    gate, first = await busy(reader)
    first.cancel()
    [second] = await ask(reader, one)
    gate.open()
    assert await second == 1


async def test_callers_are_refused_when_too_many_ask(reader: Reader) -> None:
    gate, _ = await busy(reader)
    tasks = await ask(reader, *[one] * PENDING_MAX, by_caller=True)
    with pytest.raises(ResourceThrottled):
        await reader.ask(one, by_caller=True)
    tasks += await ask(reader, one)  # the engine's own questions are always accepted
    gate.open()
    assert await answers(tasks) == [1] * (PENDING_MAX + 1)
    assert await reader.ask(one, by_caller=True) == 1


async def test_long_lists_do_not_delay_it(reader: Reader, watched: WatchedDatabase) -> None:
    with ExitStack() as lists:
        for _ in range(READERS_MAX):
            lists.enter_context(watched.read()).execute(select(1))
        async with asyncio.timeout(10):  # the pool would make it wait for thirty seconds
            assert await reader.ask(one) == 1
