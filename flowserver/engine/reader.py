"""The one reader of small questions: whatever is asked while it reads becomes its next transaction.

A thread, a connection and a transaction for each question would cost several times what a look by key does. Questions
that may take long, such as lists and histories, are asked elsewhere, so that they keep no others waiting.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.store.database import Database

log = logging.getLogger(__name__)

QUESTIONS_MAX = 100
"""Questions in one transaction; more would hold its snapshot for longer than it saves."""

T = TypeVar("T")

Question = Callable[[Connection], Any]


class Reader:
    """Answers questions in batches, in a thread of its own. Make and use it inside one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked: list[tuple[Question, asyncio.Future[Any]]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._reading: asyncio.Task[None] | None = None

    async def ask(self, question: Callable[[Connection], T]) -> T:
        """Run a query function of a few look-ups; returns what it returns, or raises what it raises."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.append((question, future))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="reader")
        return await future

    async def close(self) -> None:
        """Answer what has been asked, then give the thread back."""
        if self._reading is not None:
            await self._reading
        self._thread.shutdown()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._asked:
                taken, self._asked = self._asked[:QUESTIONS_MAX], self._asked[QUESTIONS_MAX:]
                answers = await loop.run_in_executor(self._thread, self._answer, [question for question, _ in taken])
                for (_, future), answer in zip(taken, answers, strict=True):
                    _give(future, answer)
        finally:
            self._reading = None

    def _answer(self, questions: Sequence[Question]) -> list[Any]:
        try:
            with self._database.read() as connection:
                return [_answer_one(connection, question) for question in questions]
        except Exception as error:
            if len(questions) == 1:
                return [error]
            log.warning("a batch of %d questions failed and is taken apart: %r", len(questions), error)
            return [self._answer([question])[0] for question in questions]


def _answer_one(connection: Connection, question: Question) -> Any:
    try:
        return question(connection)
    except SQLAlchemyError:  # the transaction may be lost
        raise
    except Exception as error:  # what it found out, or a mistake of its own
        return error


def _give(future: asyncio.Future[Any], answer: Any) -> None:
    if future.cancelled():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
