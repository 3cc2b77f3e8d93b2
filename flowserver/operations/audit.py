"""The audit: who did what, on what, when, from where, and how it ended.

An operation that is recorded has its record before it begins, committed, and the record has the result before the
caller has an answer. So nothing is changed without a record, and after a crash a record without a result says that an
operation had begun, and that its caller got no answer. What an operation does by others is one record, its own.

Only requests are recorded: the engine's own work is in histories, and commands write their records themselves.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial, update_wrapper
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from flowserver.base.errors import FlowServerError, InvalidArgument
from flowserver.base.request_context import apart_from_request, present_request
from flowserver.engine.engine import Engine
from flowserver.operations.audited import AUDITED, LEVELS, AuditLevel
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.request_records import record_of
from flowserver.store.audit import (
    OK,
    AuditFilter,
    AuditRecord,
    begin_record,
    finish_record,
    list_records,
)

P = ParamSpec("P")
T = TypeVar("T")


class AuditLog:
    """Records operations of requests, those of a level and the ones before it, and lists the records."""

    def __init__(self, engine: Engine, level: AuditLevel) -> None:
        self._engine = engine
        levels = LEVELS[: LEVELS.index(level) + 1]
        self.recording = frozenset(name for name, each in AUDITED.items() if each.level in levels)
        """The operations that it records."""

    async def recorded(self, operation: str, named: str, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns or raises, with a record of it; `named` is the path of the object.

        Raises ResourceThrottled before `work` begins if too much waits to be written.
        """
        request = present_request()
        if request is None or request.is_audited or operation not in self.recording:
            return await work()
        request.is_audited = True
        record = record_of(request, self._engine.clock.now_ms(), operation=operation, named=named)
        committer = self._engine.committer
        try:
            with apart_from_request():
                await committer.write(partial(begin_record, record=record), by_caller=True, nonce=request.nonce)
            request.nonce = None
            finish = partial(finish_record, record_id=record.record_id)
            try:
                result = await work()
            except FlowServerError as error:
                request.has_record = True
                await committer.write(partial(finish, result=error.code))
                raise
            await committer.write(partial(finish, result=OK))
            return result
        finally:
            request.is_audited = False

    async def list(self, wanted: AuditFilter, *, next_token: str | None, limit: int | None) -> Page[AuditRecord]:
        """Records, the newest first; a page may be short, or even empty, before the last one. Raises InvalidArgument.

        The token is the id of the last record that was read.
        """
        size = check_limit(limit, self._engine.limits.page_max)
        if "\0" in (next_token or ""):
            raise InvalidArgument("this server did not give this nextToken")
        read = partial(list_records, wanted=wanted, before=next_token, limit=size)
        return Page(*await self._engine.slow_reads.ask(read))


class _Recording(Protocol):
    """Operations that are recorded."""

    _audit: AuditLog


S = TypeVar("S", bound=_Recording)
Method = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]


def audited(operation: str, path: str) -> Callable[[Method[S, P, T]], Method[S, P, T]]:
    """Records a method; `path` is that of its object, with parameters in braces. Parts that are None are left out."""
    assert operation in AUDITED, operation
    parts = path.split("/")

    def decorate(method: Method[S, P, T]) -> Method[S, P, T]:
        signature = inspect.signature(method)

        def named(*args: Any, **kwargs: Any) -> str:
            values = signature.bind(*args, **kwargs).arguments
            found = (values.get(part[1:-1]) if part.startswith("{") else part for part in parts)
            return "/".join(str(part) for part in found if part is not None)

        def record(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
            if operation not in self._audit.recording:
                return method(self, *args, **kwargs)
            return self._audit.recorded(operation, named(self, *args, **kwargs), partial(method, self, *args, **kwargs))

        update_wrapper(record, method)
        return record

    return decorate
