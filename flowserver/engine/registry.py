"""Where a function's calls go right now, remembered for a moment."""

import asyncio

from cachetools import TTLCache
from sqlalchemy.exc import DBAPIError

from flowserver.invokers.invocation import Endpoint
from flowserver.machine.messages import Failure
from flowserver.store.damage import is_damage
from flowserver.store.database import Database
from flowserver.store.functions import FunctionDamaged, FunctionRow, find_function, service_is_known

REMEMBER_SECONDS = 1.0
"""How long another node's change of a registration may go unnoticed here."""

REMEMBERED_MAX = 10_000

Lookup = Endpoint | Failure


class FunctionRegistry:
    """Looks functions up by service, qualifier and name."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: TTLCache[tuple[str, str, str], Lookup] = TTLCache(REMEMBERED_MAX, REMEMBER_SECONDS)

    async def find(self, service: str, qualifier: str, function: str) -> Lookup:
        """The endpoint; a registration for the qualified service (`s.prod`) comes before the plain one.

        Otherwise a Failure named as Function Compute names it: FC.ServiceNotFound or FC.FunctionNotFound; or
        FnF.RuntimeError if the registration is damaged.
        """
        key = (service, qualifier, function)
        found = self._known.get(key)
        if found is None:
            found = await asyncio.to_thread(self._look, service, qualifier, function)
            self._known[key] = found
        return found

    def forget(self) -> None:
        """A registration has changed."""
        self._known.clear()

    def _look(self, service: str, qualifier: str, function: str) -> Lookup:
        with self._database.read() as connection:
            for name in (f"{service}.{qualifier}", service) if qualifier else (service,):
                try:
                    row = find_function(connection, name, function)
                except (FunctionDamaged, DBAPIError) as error:
                    if isinstance(error, FunctionDamaged) or is_damage(error):
                        return Failure("FnF.RuntimeError", f"the function cannot be called: {error}")
                    raise
                if row is not None:
                    return _endpoint(row)
            if service and not service_is_known(connection, service):
                return Failure("FC.ServiceNotFound", f"service '{service}' does not exist")
        where = f" in service '{service}'" if service else ""
        return Failure("FC.FunctionNotFound", f"function '{function}' does not exist{where}")


def _endpoint(row: FunctionRow) -> Endpoint:
    return Endpoint(url=row.url, headers=row.headers, timeout_seconds=row.timeout_seconds)
