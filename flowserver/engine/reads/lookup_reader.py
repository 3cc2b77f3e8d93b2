"""The reader of look-ups by key: questions that arrive while it reads become its next transaction.

A thread, a connection and a transaction for each question would cost several times as much as the look-up. Lists,
histories and other slow reads use `slow_reads`, so they delay no look-up. The reader has a connection of its own, so
look-ups do not wait for a connection either. It begins its transactions itself and takes its questions in the event
loop, so it has not the race that `concurrency/coalescer.py` solves.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.base.request_context import present_request
from flowserver.concurrency.futures import resolve
from flowserver.concurrency.keyed_fifos import KeyedFifos
from flowserver.concurrency.load_shedding import LoadShedding
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import is_away, lost_connection

log = logging.getLogger(__name__)

QUESTIONS_MAX = 100
"""Questions in one transaction; more would hold its snapshot too long."""

T = TypeVar("T")

Question = Callable[[Connection], Any]


class Reader:
    """Answers questions in batches, in its own thread. Make and use it inside one event loop."""

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits
        self._asked: KeyedFifos[tuple[Question, asyncio.Future[Any]]] = KeyedFifos()
        """By the access key of the caller: keys take turns."""
        self._shedding = LoadShedding()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._reading: asyncio.Task[None] | None = None
        self._is_closed = False
        self.begun = 0
        """Counts the transactions. Until it changes, waiting questions will see all that is committed now."""

    async def ask(self, question: Callable[[Connection], T], *, by_caller: bool = False) -> T:
        """Run a query function of a few look-ups; returns what it returns, or raises what it raises.

        An exception that a future cannot hold, such as StopIteration, is raised as RuntimeError. Raises
        ResourceThrottled at once if `pending_messages_max` wait and `by_caller` (`load_shedding`), or if it is closed.
        """
        if self._is_closed:
            raise ResourceThrottled
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if by_caller and (key := self._shedding.accept(len(self._asked), self._limits.pending_messages_max)):
            future.add_done_callback(self._shedding.until_done(key))
        request = present_request()
        self._asked.append("" if request is None else request.key_id, (question, future))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="reader")
        return await future

    async def close(self) -> None:
        """Answer the waiting questions, accept no more, and end the thread."""
        self._is_closed = True
        if self._reading is not None:
            await asyncio.wait([self._reading])
        self._thread.shutdown()

    async def _read(self) -> None:
        taken: list[tuple[Question, asyncio.Future[Any]]] = []
        loop = asyncio.get_running_loop()
        try:
            while taken := self._take():
                answers = await loop.run_in_executor(self._thread, self._answer, [question for question, _ in taken])
                for (_, future), answer in zip(taken, answers, strict=True):
                    resolve(future, answer)
        except BaseException as error:  # a bug, or this task was cancelled: no caller may wait for ever
            for _, future in [*taken, *self._asked]:
                resolve(future, RuntimeError(f"the reader was ended by {error!r}"))
            self._asked = KeyedFifos()
            if not isinstance(error, Exception):
                raise
            log.exception("the reader failed")
        finally:
            self._reading = None

    def _take(self) -> list[tuple[Question, asyncio.Future[Any]]]:
        """The next batch, without questions whose callers were cancelled."""
        taken: list[tuple[Question, asyncio.Future[Any]]] = []
        while self._asked and len(taken) < QUESTIONS_MAX:
            question, future = self._asked.pop()
            if not future.done():
                taken.append((question, future))
        self.begun += 1
        return taken

    def _answer(self, questions: Sequence[Question]) -> list[Any]:
        """Answers in order. If the questions cannot be answered together, each is asked alone."""
        try:
            return self._transact(questions)
        except Exception as error:
            if len(questions) == 1 and not lost_connection(error):
                return [error]
            log.warning("a batch of %d questions failed and is taken apart: %r", len(questions), error)
            return self._answer_apart(questions)

    def _answer_apart(self, questions: Sequence[Question]) -> list[Any]:
        """Each alone. Once the database proves to be away, the rest fail at once."""
        answers: list[Any] = []
        for question in questions:
            try:
                answers += self._transact([question])
            except Exception as error:
                answers.append(error)
                if is_away(error) and len(answers) < len(questions) and not self._is_there():
                    return answers + [error] * (len(questions) - len(answers))
        return answers

    def _is_there(self) -> bool:
        """Whether the database works, so that only the question that has just failed is at fault."""
        try:
            self._transact([lambda connection: connection.execute(select(1)).scalar()])
        except Exception:
            return False
        return True

    def _transact(self, questions: Sequence[Question]) -> list[Any]:
        with self._database.look() as connection:
            return [_answer_one(connection, question) for question in questions]


def _answer_one(connection: Connection, question: Question) -> Any:
    try:
        return question(connection)
    except SQLAlchemyError:  # the transaction may be lost
        raise
    except Exception as error:  # its result, or a bug in it
        return error
    except BaseException as error:  # such as SystemExit, which would end the event loop
        mistake = RuntimeError(f"a question raised {error!r}")
        mistake.__cause__ = error
        return mistake
