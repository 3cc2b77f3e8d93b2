"""The registry of functions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from sqlalchemy import Connection
from yarl import URL

from flowserver.base.errors import FunctionNotExists, InvalidArgument
from flowserver.base.names import NAME_RULE, is_name
from flowserver.engine.engine import Engine
from flowserver.invokers.endpoint_rules import check_endpoint, check_hooks
from flowserver.invokers.forbidden_addresses import ORDINARY, AddressRules
from flowserver.invokers.function_health import FunctionKey, Health
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.function_names import WITHOUT_SERVICE, is_qualifier, service_key
from flowserver.operations.hidden_headers import with_stored_values
from flowserver.operations.pages import Page, check_limit
from flowserver.store.functions import (
    FunctionDamaged,
    FunctionRow,
    delete_function,
    find_function,
    list_functions,
    put_function,
)
from flowserver.store.named_secrets import missing_secrets, secrets_of

UNKNOWN: Final = "the secret {0} does not exist; until it does, calls fail: flowserver secrets set {0}"

TIMEOUT_SECONDS_DEFAULT = 600
"""A function's time when its registration sets none: Function Compute's classic longest time-out."""

PLACES_MAX = 1_000_000
"""The largest `concurrency_max` and `waiting_max`: far more than can be meant."""


@dataclass(frozen=True, slots=True)
class FunctionWarning:
    """One finding: `refused-address` or `unknown-secret`, and what it says."""

    id: str
    message: str


@dataclass(frozen=True, slots=True)
class FunctionNumbers:
    """How a registered or called function fares on this node."""

    service: str
    function: str
    health: Health


class FunctionOperations:
    """Operations on registered functions. The service `-` means none; `s.prod` is the service `s`, qualifier `prod`."""

    def __init__(self, engine: Engine, audit: AuditLog, addresses: AddressRules = ORDINARY) -> None:
        self._engine = engine
        self._audit = audit
        self._addresses = addresses
        self.measured_since = engine.clock.now_ms()
        """Since when (ms) this node measures calls: since its start."""

    @audited("functions.put", "functions/{service}/{function}")
    async def put(
        self,
        service: str,
        function: str,
        *,
        url: str,
        headers: dict[str, str],
        timeout_seconds: int | None,
        initialize_url: str | None = None,
        pre_stop_url: str | None = None,
        hook_seconds: int | None = None,
        concurrency_max: int | None = None,
        waiting_max: int | None = None,
        dry_run: bool = False,
    ) -> tuple[FunctionRow, bool]:
        """Register or replace a function; returns it and whether it is new.

        A header whose value is HIDDEN keeps its stored value (`hidden_headers`). With `dry_run` nothing is changed; the
        returned row keeps its `modified_at` if the registration is stored so already. Raises InvalidArgument.
        """
        _check_names(service, function)
        seconds = TIMEOUT_SECONDS_DEFAULT if timeout_seconds is None else timeout_seconds
        check_endpoint(url, headers, seconds)
        check_hooks(initialize_url, pre_stop_url, hook_seconds)
        _check_places(concurrency_max, waiting_max)
        now = self._engine.clock.now_ms()
        row = FunctionRow(
            service=service_key(service),
            function=function,
            url=url,
            headers=headers,
            timeout_seconds=seconds,
            initialize_url=initialize_url,
            pre_stop_url=pre_stop_url,
            hook_seconds=hook_seconds,
            concurrency_max=concurrency_max,
            waiting_max=waiting_max,
            created_at=now,
            modified_at=now,
        )
        if dry_run:
            return await self._engine.reader.ask(partial(_compare, wanted=row), by_caller=True)
        is_new = await self._engine.committer.write_once(partial(_put, wanted=row), by_caller=True)
        self._engine.functions_changed()
        return await self.describe(service, function), is_new

    async def warnings_of(self, row: FunctionRow) -> Sequence[FunctionWarning]:
        """What this server's settings refuse of a registration, as far as its URLs show it, and missing secrets."""
        names = secrets_of(row)
        missing = await self._engine.reader.ask(partial(missing_secrets, names=names), by_caller=True) if names else ()
        unknown = [FunctionWarning("unknown-secret", UNKNOWN.format(name)) for name in missing]
        return [*self._refused_addresses(row), *unknown]

    def _refused_addresses(self, row: FunctionRow) -> Sequence[FunctionWarning]:
        urls = {"url": row.url, "initializeUrl": row.initialize_url, "preStopUrl": row.pre_stop_url}
        hosts = {name: URL(url).host or "" for name, url in urls.items() if url is not None}
        reasons = {name: self._addresses.refusal_of(host) for name, host in hosts.items()}
        return [
            FunctionWarning("refused-address", f"calls of this {name} will fail: {reason}")
            for name, reason in reasons.items()
            if reason is not None
        ]

    async def describe(self, service: str, function: str) -> FunctionRow:
        """The registration; raises FunctionNotExists."""
        row = await self._engine.reader.ask(lambda c: find_function(c, service_key(service), function), by_caller=True)
        if row is None:
            raise FunctionNotExists(f"function {service}/{function} is not registered")
        return row

    @audited("functions.delete", "functions/{service}/{function}")
    async def delete(self, service: str, function: str) -> None:
        """Remove a function from the registry; raises FunctionNotExists."""

        def write(connection: Connection, was_there: bool | None) -> bool:
            return delete_function(connection, service_key(service), function) or bool(was_there)

        deleted = await self._engine.committer.write_once(write, by_caller=True)
        self._engine.functions_changed()
        if not deleted:
            raise FunctionNotExists(f"function {service}/{function} is not registered")

    async def list(self, *, next_token: str | None, limit: int | None) -> Page[FunctionRow]:
        """Functions by service and name; the token is the last `service/function` of the previous page."""
        size = check_limit(limit, self._engine.limits.page_max)
        after = None
        if next_token:
            service, _, function = next_token.partition("/")
            after = (service_key(service), function)
        bytes_max = self._engine.limits.page_bytes_max
        rows, has_more = await self._engine.slow_reads.ask(
            lambda c: list_functions(c, after=after, limit=size, bytes_max=bytes_max)
        )
        return Page(rows, f"{rows[-1].service or WITHOUT_SERVICE}/{rows[-1].function}" if has_more else None)

    async def health_of(self, service: str, function: str) -> FunctionNumbers:
        """How the function fares on this node; zeros if it was not called. Raises FunctionNotExists."""
        row = await self.describe(service, function)
        return self.numbers((row.service, row.function))

    def health(self, *, next_token: str | None, limit: int | None) -> Page[FunctionKey]:
        """The functions that this node has called, by service and name; `numbers` says how each fares."""
        size = check_limit(limit, self._engine.limits.page_max)
        service, _, function = (next_token or "").partition("/")
        after = (service_key(service), function)
        found = [key for key in self._engine.invoker.health.keys() if not next_token or key > after]  # noqa: SIM118 # no dict
        last = found[size - 1] if len(found) > size else None
        return Page(found[:size], None if last is None else f"{last[0] or WITHOUT_SERVICE}/{last[1]}")

    def numbers(self, key: FunctionKey) -> FunctionNumbers:
        """How a function fares on this node; any thread may ask."""
        return FunctionNumbers(*key, self._engine.invoker.health.of(key))


def _put(connection: Connection, was_new: bool | None, wanted: FunctionRow) -> bool:
    """Another node may replace the stored values: they are read under a lock."""
    stored = _stored(connection, wanted, lock=True)
    return put_function(connection, with_stored_values(wanted, stored)) or bool(was_new)


def _compare(connection: Connection, wanted: FunctionRow) -> tuple[FunctionRow, bool]:
    """What putting it would return."""
    stored = _stored(connection, wanted)
    row = with_stored_values(wanted, stored)
    if stored is None:
        return row, True
    is_same = replace(row, created_at=stored.created_at, modified_at=stored.modified_at) == stored
    return stored if is_same else replace(row, created_at=stored.created_at), False


def _stored(connection: Connection, wanted: FunctionRow, *, lock: bool = False) -> FunctionRow | None:
    try:
        return find_function(connection, wanted.service, wanted.function, lock=lock)
    except FunctionDamaged:  # which registering it again repairs
        return None


def _check_names(service: str, function: str) -> None:
    plain, _, qualifier = service.partition(".")
    service_ok = service == WITHOUT_SERVICE or (is_name(plain) and ("." not in service or is_qualifier(qualifier)))
    if not service_ok:
        raise InvalidArgument(f"the service {NAME_RULE}; '.qualifier' may follow")
    if not is_name(function):
        raise InvalidArgument(f"the function {NAME_RULE}")


def _check_places(concurrency_max: int | None, waiting_max: int | None) -> None:
    if concurrency_max is not None and not 1 <= concurrency_max <= PLACES_MAX:
        raise InvalidArgument(f"concurrencyMax must be 1 to {PLACES_MAX:,}")
    if waiting_max is not None and not 0 <= waiting_max <= PLACES_MAX:
        raise InvalidArgument(f"waitingMax must be 0 to {PLACES_MAX:,}")
