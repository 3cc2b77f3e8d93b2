"""Records refused callers in the audit, so that a flood of refusals fills neither the disk nor the writer's queue.

Refusals of one kind are one record an hour, which counts them. A node records at most `kinds_max` kinds in that time;
what goes beyond is one further record. Counts are written at most once a second, after the answers: a crash loses those
of its last second.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from flowserver.base.clock import Clock
from flowserver.base.errors import (
    AccessDenied,
    FlowServerError,
    MissingParameter,
    RequestTimeTooSkewed,
    SignatureNonceUsed,
    SignatureNotMatch,
    UnknownAccessKey,
)
from flowserver.base.request_context import RequestContext, present_request
from flowserver.concurrency.futures import shared
from flowserver.operations.request_records import record_of
from flowserver.store.audit import AuditRecord

log = logging.getLogger(__name__)


class Unsigned(MissingParameter):
    """The request is not signed."""


HOUR_MS: Final = 3_600_000
WRITTEN_SECONDS: Final = 1.0

REFUSALS: Final = (
    *(AccessDenied, UnknownAccessKey, Unsigned),
    *(SignatureNotMatch, SignatureNonceUsed, RequestTimeTooSkewed),
)

AUTHENTICATE: Final = "authenticate"
"""The operation of a caller that could not show who it is."""

FURTHER: Final = "further refusals"
"""The operation of the record that counts what goes beyond the kinds."""

Write = Callable[[Sequence[AuditRecord]], Awaitable[None]]


class RefusalLog:
    """Counts the refusals of one process."""

    def __init__(self, write: Write, clock: Clock, kinds_max: int) -> None:
        self._write = write
        self._clock = clock
        self._kinds_max = kinds_max
        self._records: dict[tuple[str, ...], AuditRecord] = {}
        self._unwritten: dict[str, AuditRecord] = {}
        self._began_at = 0
        self._writing: asyncio.Future[None] | None = None

    def note(self, error: FlowServerError) -> None:
        """Count the error of the present request, if it is a refusal that no record of an operation has."""
        request = present_request()
        if request is None or request.has_record or not isinstance(error, REFUSALS):
            return
        now = self._clock.now_ms()
        if not 0 <= now - self._began_at < HOUR_MS:
            self._records.clear()
            self._began_at = now
        record = _record(request, error.code, now)
        kind: tuple[str, ...] = record.operation, record.object, record.result, record.key_id, record.remote, record.api
        if kind not in self._records and len(self._records) >= self._kinds_max:
            kind = (FURTHER,)
            record = AuditRecord(record_id=record.record_id, at=now, operation=FURTHER, result=AccessDenied.code)
        earlier = self._records.get(kind)
        if earlier is not None:
            record = replace(earlier, count=min(earlier.count + 1, 2**31 - 1), until=now)
        self._records[kind] = record
        self._unwritten[record.record_id] = record
        if self._writing is None or self._writing.done():
            self._writing = shared(self._write_all())

    async def close(self) -> None:
        """Write what is not written; the last call."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])
        await self._write_once()

    async def _write_all(self) -> None:
        while self._unwritten:
            await self._write_once()
            await asyncio.sleep(WRITTEN_SECONDS)

    async def _write_once(self) -> None:
        records, self._unwritten = self._unwritten, {}
        if not records:
            return
        try:
            await self._write(list(records.values()))
        except Exception as error:
            log.warning("refusals are not recorded, which is tried again: %s", type(error).__name__)
            self._unwritten = records | self._unwritten


def _record(request: RequestContext, code: str, now_ms: int) -> AuditRecord:
    wanted = request.permission or (request.route if request.key_id else AUTHENTICATE)
    named = f"flows/{request.flow}" if request.flow else ""
    if named and request.execution:
        named += f"/executions/{request.execution}"
    if not request.key_id and request.claimed_key_id:
        named = f"keys/{request.claimed_key_id}"
    return record_of(request, now_ms, operation=wanted, named=named, result=code)
