"""Asynchronous invocations (Serverless Tasks): submit, stop, and read until some days after their end."""

from dataclasses import dataclass
from typing import Final

from flowserver.base.errors import (
    EntityTooLarge,
    InternalServerError,
    InvalidArgument,
    InvocationNotExists,
    InvocationNotParked,
)
from flowserver.base.names import NAME_RULE, is_name
from flowserver.engine.engine import Engine
from flowserver.machine.invocations.states import InvocationStatus
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.function_names import WITHOUT_SERVICE, check_function, service_key
from flowserver.operations.page_tokens import position_of, position_token_of
from flowserver.operations.pages import Page
from flowserver.operations.span_links import traceparent_of_request
from flowserver.store.invocations.async_settings import LATEST
from flowserver.store.invocations.listing import (
    InvocationFilter,
    list_functions_invoked,
    list_invocations,
)
from flowserver.store.invocations.parking import InvocationHeader, find_header, list_parked_invocations
from flowserver.store.invocations.rows import InvocationDamaged, InvocationRow, find_invocation
from flowserver.store.invocations.submissions import NewInvocation

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 100
FUNCTIONS_LIMIT_DEFAULT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A filter for the invocations of a function. Instants in ms, both ends included."""

    status: str | None = None
    id_prefix: str = ""
    started_from: int | None = None
    started_to: int | None = None
    oldest_first: bool = False
    with_payload: bool = False


class AsyncInvocationOperations:
    """Operations on asynchronous invocations; a function is named as in `function_names`."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("invocations.submit", "functions/{service}/{function}/invocations/{invocation_id}")
    async def submit(
        self,
        service: str,
        qualifier: str,
        function: str,
        payload: bytes,
        *,
        request_id: str,
        invocation_id: str | None = None,
    ) -> InvocationRow:
        """Accept an invocation. Once this returns, the invocation is durable and will run.

        Raises InvalidArgument, EntityTooLarge, ServiceNotFound, FunctionNotFound, InvocationExists if the function has
        one of that id, ResourceThrottled if too many of the function wait already, and DiskAlmostFull.
        """
        key = check_function(service, qualifier, function)
        if invocation_id is not None and not is_name(invocation_id):
            raise InvalidArgument(f"the id of an invocation {NAME_RULE}")
        bytes_max = self._engine.limits.async_payload_bytes_max
        if len(payload) > bytes_max:
            raise EntityTooLarge(f"payload size exceeds maximum allowed size ({bytes_max} bytes)")
        new = NewInvocation(
            service=key[0],
            qualifier=qualifier,
            function=function,
            payload=payload,
            invocation_key=request_id,
            request_id=request_id,
            invocation_id=invocation_id,
            traceparent=traceparent_of_request(),
        )
        self._engine.disk.require()
        return await self._engine.invocations.submit(new)

    async def describe(self, service: str, qualifier: str, function: str, invocation_id: str) -> InvocationRow:
        """The invocation with payload and result. Ids belong to the function, across all its qualifiers.

        Raises InvalidArgument or InvocationNotExists.
        """
        name, _, _ = check_function(service, qualifier, function)
        try:
            row = await self._engine.reader.ask(
                lambda c: find_invocation(c, name, function, invocation_id), by_caller=True
            )
        except InvocationDamaged as damaged:
            raise InternalServerError(str(damaged)) from None
        if row is None:
            raise InvocationNotExists(f"function '{function}' has no invocation '{invocation_id}'")
        return row

    @audited("invocations.stop", "functions/{service}/{function}/invocations/{invocation_id}")
    async def stop(self, service: str, qualifier: str, function: str, invocation_id: str) -> None:
        """Stop an invocation. If its function runs, stopping has only begun when this returns.

        Raises InvalidArgument if it has ended, and InvocationNotExists.
        """
        name, _, _ = check_function(service, qualifier, function)
        await self._engine.invocations.stop(name, function, invocation_id)

    async def describe_header(self, service: str, function: str, invocation_id: str) -> InvocationHeader:
        """The invocation without payload and result; works even if those are damaged.

        Raises InvalidArgument or InvocationNotExists.
        """
        name, _, _ = check_function(service, "", function)
        found = await self._engine.reader.ask(lambda c: find_header(c, name, function, invocation_id))
        if found is None:
            raise InvocationNotExists(f"function '{function}' has no invocation '{invocation_id}'")
        return found

    async def list_parked(self, *, next_token: str | None, limit: int | None) -> Page[InvocationHeader]:
        """Parked invocations of all functions; the token is the key of the last item on the previous page."""
        size = _checked_limit(limit, LIMIT_DEFAULT)
        if "\0" in (next_token or ""):
            raise InvalidArgument("this server did not give this nextToken")
        found = await self._engine.slow_reads.ask(lambda c: list_parked_invocations(c, next_token or "", size + 1))
        return Page(found[:size], found[size - 1].invocation_key if len(found) > size else None)

    @audited("invocations.restart", "functions/{service}/{function}/invocations/{invocation_id}")
    async def unpark(self, service: str, function: str, invocation_id: str) -> InvocationHeader:
        """Continue a parked invocation. It is parked again if the cause still exists.

        Raises InvalidArgument, InvocationNotExists and InvocationNotParked.
        """
        name, _, _ = check_function(service, "", function)
        has_begun = await self._engine.invocations.unpark(name, function, invocation_id)
        header = await self.describe_header(service, function, invocation_id)
        if not has_begun:
            raise InvocationNotParked(f"invocation '{invocation_id}' of function '{function}' is not parked")
        return header

    async def list(
        self,
        service: str,
        qualifier: str,
        function: str,
        wanted: Wanted,
        *,
        next_token: str | None,
        limit: int | None,
    ) -> Page[InvocationRow]:
        """Invocations by the time of their submission, without results; all qualifiers if none is given.

        A page with payloads ends before they exceed `page_bytes_max` together. Raises InvalidArgument.
        """
        name, _, _ = check_function(service, qualifier, function)
        size = _checked_limit(limit, LIMIT_DEFAULT)
        if wanted.with_payload:
            size = min(size, self._engine.limits.page_bytes_max // self._engine.limits.async_payload_bytes_max)
        if wanted.status is not None and wanted.status not in set(InvocationStatus):
            raise InvalidArgument(f"status must be one of {', '.join(InvocationStatus)}")
        chosen = InvocationFilter(
            service=name,
            function=function,
            qualifiers=LATEST if qualifier == LATEST[1] else (qualifier,) if qualifier else (),
            status=wanted.status,
            id_prefix=wanted.id_prefix,
            created_from=wanted.started_from,
            created_to=wanted.started_to,
            oldest_first=wanted.oldest_first,
        )
        after = position_of(next_token) if next_token else None
        rows, end = await self._engine.slow_reads.ask(
            lambda c: list_invocations(c, chosen, after=after, limit=size, with_payload=wanted.with_payload),
        )
        return Page(rows, None if end is None else position_token_of(end))

    async def list_functions(self, *, next_token: str | None, limit: int | None) -> Page[tuple[str, str]]:
        """Service and name of the functions that have invocations; the token is the last item of the previous page."""
        size = _checked_limit(limit, FUNCTIONS_LIMIT_DEFAULT)
        service, _, function = (next_token or "").partition("/")
        after = (service_key(service), function) if next_token else None
        found = await self._engine.slow_reads.ask(lambda c: list_functions_invoked(c, after=after, limit=size + 1))
        shown = [(service or WITHOUT_SERVICE, function) for service, function in found]
        return Page(shown[:size], "/".join(shown[size - 1]) if len(shown) > size else None)


def _checked_limit(limit: int | None, default: int) -> int:
    size = default if limit is None else limit
    if not 1 <= size <= LIMIT_MAX:
        raise InvalidArgument(f"limit must be between 1 and {LIMIT_MAX}")
    return size
