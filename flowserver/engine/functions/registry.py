"""Where a function's calls go right now, remembered for a moment."""

import asyncio
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from flowserver.concurrency.futures import shared
from flowserver.engine.commit.reader import Reader
from flowserver.invokers.endpoints import HOOK_SECONDS_DEFAULT
from flowserver.invokers.invocation import Endpoint
from flowserver.machine.messages import Failure
from flowserver.store.functions import FunctionDamaged, FunctionRow, find_function, service_is_known
from flowserver.store.sql.unreadable import is_damage

REMEMBER_SECONDS = 1.0
"""How long another node's change of a registration may go unnoticed here."""

REMEMBERED_MAX = 10_000

Lookup = Endpoint | Failure

FunctionKey = tuple[str, str, str]
"""(service, qualifier, function)"""


class Remembered(NamedTuple):
    """What was found, and until when it is taken as right, by the event loop's clock."""

    found: Lookup
    until: float


class FunctionRegistry:
    """Looks functions up by service, qualifier and name."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[FunctionKey, Remembered] = {}
        self._looking: dict[FunctionKey, asyncio.Task[Lookup]] = {}

    async def find(self, service: str, qualifier: str, function: str) -> Lookup:
        """The endpoint; a registration for the qualified service (`s.prod`) comes before the plain one.

        Otherwise a Failure named as Function Compute names it: FC.ServiceNotFound or FC.FunctionNotFound; or
        FnF.RuntimeError if the registration is damaged.
        """
        found = self.remembered(service, qualifier, function)
        if found is not None:
            return found
        key = (service, qualifier, function)
        looking = self._looking.get(key)
        if looking is None:  # or one look serves all who ask meanwhile
            looking = self._looking[key] = shared(self._look_up(key))
        return await asyncio.shield(looking)

    def remembered(self, service: str, qualifier: str, function: str) -> Lookup | None:
        """What `find` would return without looking; None if it would look."""
        known = self._known.get((service, qualifier, function))
        if known is None or asyncio.get_running_loop().time() >= known.until:
            return None
        return known.found

    def forget(self) -> None:
        """A registration has changed."""
        self._known.clear()
        self._looking.clear()

    async def _look_up(self, key: FunctionKey) -> Lookup:
        me = asyncio.current_task()
        try:
            found = await self._ask(key)
            if self._looking.get(key) is me:  # nothing has changed since it looked
                found = self._remember(key, found)
            return found
        finally:
            if self._looking.get(key) is me:
                del self._looking[key]

    async def _ask(self, key: FunctionKey) -> Lookup:
        try:
            return await self._reader.ask(partial(look_up, key=key))
        except (FunctionDamaged, DBAPIError) as error:
            if isinstance(error, FunctionDamaged) or is_damage(error):
                return Failure("FnF.RuntimeError", f"the function cannot be called: {error}")
            raise

    def _remember(self, key: FunctionKey, found: Lookup) -> Lookup:
        before = self._known.get(key)
        if before is not None and before.found == found:
            found = before.found  # the same object, by which the invoker knows its way
        elif len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[key] = Remembered(found, asyncio.get_running_loop().time() + REMEMBER_SECONDS)
        return found


def look_up(connection: Connection, key: FunctionKey) -> Lookup:
    """What `FunctionRegistry.find` returns, as it is in the database now; raises FunctionDamaged."""
    service, qualifier, function = key
    for name in (f"{service}.{qualifier}", service) if qualifier else (service,):
        row = find_function(connection, name, function)
        if row is not None:
            return _endpoint(row)
    if service and not service_is_known(connection, service):
        return Failure("FC.ServiceNotFound", f"service '{service}' does not exist")
    where = f" in service '{service}'" if service else ""
    return Failure("FC.FunctionNotFound", f"function '{function}' does not exist{where}")


def _endpoint(row: FunctionRow) -> Endpoint:
    return Endpoint(
        url=row.url,
        headers=row.headers,
        timeout_seconds=row.timeout_seconds,
        registered_as=(row.service, row.function),
        modified_at=row.modified_at,
        initialize_url=row.initialize_url,
        pre_stop_url=row.pre_stop_url,
        hook_seconds=HOOK_SECONDS_DEFAULT if row.hook_seconds is None else row.hook_seconds,
        concurrency_max=row.concurrency_max,
        waiting_max=row.waiting_max,
    )
