"""Settings of a function's asynchronous invocations: retries, maximum age in the queue, destinations of results."""

from functools import partial
from typing import Any, Final

from sqlalchemy import Connection

from flowserver.base.errors import AsyncConfigNotExists, InvalidArgument
from flowserver.base.json_values import JsonObject
from flowserver.engine.engine import Engine
from flowserver.invokers.endpoint_rules import check_url
from flowserver.machine.deliveries.destinations import NoDestination, WebAddress, read_destination
from flowserver.machine.invocations.states import AGE_SECONDS_MAX, RETRIES_MAX
from flowserver.machine.messages import Failure
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.function_names import check_function, not_found
from flowserver.operations.pages import Page
from flowserver.store.invocations.async_configs import (
    AsyncConfigRow,
    delete_async_config,
    find_async_config,
    list_async_configs,
    put_async_config,
)

LIMIT_DEFAULT: Final = 20
LIMIT_MAX: Final = 100

_DESTINATIONS = ("onSuccess", "onFailure")
_FROM_A_REPLY = ("service", "function", "qualifier", "createdTime", "lastModifiedTime")
"""Fields that a caller may give who sends back what it was given; they change nothing."""


class AsyncConfigOperations:
    """Operations on the configurations of a function, one for each qualifier; "" means none."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("async-configs.put", "functions/{service}/{function}/async-config")
    async def put(self, service: str, qualifier: str, function: str, wanted: JsonObject) -> AsyncConfigRow:
        """Set or replace a configuration. Fields left out have their defaults when an invocation is submitted.

        Raises InvalidArgument, ServiceNotFound or FunctionNotFound.
        """
        key = check_function(service, qualifier, function)
        document = checked_config(wanted)
        found = await self._engine.endpoints.find(*key)
        if isinstance(found, Failure):
            raise not_found(found)
        now = self._engine.clock.now_ms()
        row = AsyncConfigRow(
            service=key[0], function=function, qualifier=qualifier, document=document, created_at=now, modified_at=now
        )
        kept = await self._engine.committer.write(lambda connection: put_async_config(connection, row), by_caller=True)
        self._engine.invocations.settings.forget()
        return kept

    async def describe(self, service: str, qualifier: str, function: str) -> AsyncConfigRow:
        """The configuration; raises InvalidArgument or AsyncConfigNotExists."""
        name, _, _ = check_function(service, qualifier, function)
        row = await self._engine.reader.ask(lambda c: find_async_config(c, name, function, qualifier), by_caller=True)
        if row is None:
            raise _not_there(service, qualifier, function)
        return row

    @audited("async-configs.delete", "functions/{service}/{function}/async-config")
    async def delete(self, service: str, qualifier: str, function: str) -> None:
        """Delete a configuration; raises InvalidArgument or AsyncConfigNotExists."""
        name, _, _ = check_function(service, qualifier, function)

        def write(connection: Connection, was_there: bool | None) -> bool:
            return delete_async_config(connection, name, function, qualifier) or bool(was_there)

        deleted = await self._engine.committer.write_once(write, by_caller=True)
        self._engine.invocations.settings.forget()
        if not deleted:
            raise _not_there(service, qualifier, function)

    async def list(
        self, service: str, function: str, *, next_token: str | None, limit: int | None
    ) -> Page[AsyncConfigRow]:
        """The function's configurations by qualifier; the token is the qualifier to go on with."""
        name, _, _ = check_function(service, "", function)
        size = LIMIT_DEFAULT if limit is None else limit
        if not 1 <= size <= LIMIT_MAX:
            raise InvalidArgument(f"limit must be between 1 and {LIMIT_MAX}")
        query = partial(
            list_async_configs,
            service=name,
            function=function,
            from_qualifier=next_token or "",
            limit=size,
            bytes_max=self._engine.limits.page_bytes_max,
        )
        return Page(*await self._engine.slow_reads.ask(query))


def checked_config(wanted: JsonObject) -> JsonObject:
    """The part of a configuration to store: the fields that were set. Raises InvalidArgument."""
    given = {name: value for name, value in wanted.items() if value is not None and name not in _FROM_A_REPLY}
    kept: JsonObject = {}
    for name, value in given.items():
        match name:
            case "maxAsyncRetryAttempts":
                kept[name] = _number(name, value, 0, RETRIES_MAX)
            case "maxAsyncEventAgeInSeconds":
                kept[name] = _number(name, value, 1, AGE_SECONDS_MAX)
            case "statefulInvocation":
                kept[name] = _boolean(name, value)
            case "destinationConfig":
                kept[name] = _destinations(value)
            case _:
                raise InvalidArgument(f"{name[:100]} is not known")
    return kept


def _number(name: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidArgument(f"{name} must be a whole number from {least} to {most}")
    return value


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} must be true or false")
    return value


def _destinations(value: Any) -> JsonObject:
    if not isinstance(value, dict) or not value.keys() <= set(_DESTINATIONS):
        raise InvalidArgument("destinationConfig may hold onSuccess and onFailure")
    targets = {name: _destination(name, one) for name, one in value.items() if one}
    return {name: {"destination": target} for name, target in targets.items() if target}


def _destination(name: str, one: Any) -> str:
    target = one.get("destination", "") if isinstance(one, dict) and one.keys() <= {"destination"} else None
    if not isinstance(target, str):
        raise InvalidArgument(f"{name} holds a destination, a text")
    if not target:
        return ""
    try:
        destination = read_destination(target)
    except NoDestination as error:
        raise InvalidArgument(f"{name}: {error}") from None
    if isinstance(destination, WebAddress):
        check_url(destination.url, name)
    return target


def _not_there(service: str, qualifier: str, function: str) -> AsyncConfigNotExists:
    title = f"{service}.{qualifier}" if qualifier else service
    return AsyncConfigNotExists(f"function '{function}' in service '{title}' has no asynchronous configuration")
