"""Where a function's calls go right now, cached for a moment."""

from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from flowserver.base.encryption import NO_ENCRYPTION, Encryption
from flowserver.concurrency.expiring_cache import ExpiringCache
from flowserver.engine.reads.lookup_reader import Reader
from flowserver.invokers.calls import Endpoint
from flowserver.invokers.endpoint_rules import HOOK_SECONDS_DEFAULT
from flowserver.invokers.error_names import ErrorName
from flowserver.machine.messages import Failure
from flowserver.store.functions import FunctionDamaged, FunctionRow, find_function, service_is_known
from flowserver.store.named_secrets import SecretUnavailable, with_secrets
from flowserver.store.sql.unreadable import is_damage

CACHED_SECONDS = 1.0
"""How long another node's change of a registration may go unnoticed here."""

CACHED_MAX = 10_000

Lookup = Endpoint | Failure

FunctionKey = tuple[str, str, str]
"""(service, qualifier, function)"""


class EndpointLookup:
    """Looks functions up by service, qualifier and name."""

    def __init__(self, reader: Reader, encryption: Encryption = NO_ENCRYPTION) -> None:
        self._reader = reader
        self._encryption = encryption
        self._known = ExpiringCache(self._read, seconds=CACHED_SECONDS, keys_max=CACHED_MAX)

    async def find(self, service: str, qualifier: str, function: str) -> Lookup:
        """The endpoint; a registration for the qualified service (`s.prod`) comes before the plain one.

        Otherwise a Failure named as Function Compute names it: FC.ServiceNotFound or FC.FunctionNotFound;
        FnF.RuntimeError if the registration is damaged; or FnF.SecretNotFound or FnF.SecretUnreadable. An endpoint that
        has not changed is the same object, by which the invoker knows its way.
        """
        return await self._known.find((service, qualifier, function))

    def cached(self, service: str, qualifier: str, function: str) -> Lookup | None:
        """What `find` would return without a read; None if it would read."""
        return self._known.cached((service, qualifier, function))

    def forget(self) -> None:
        """A registration has changed."""
        self._known.forget()

    async def _read(self, key: FunctionKey) -> Lookup:
        try:
            return await self._reader.ask(partial(_look_up, key=key, encryption=self._encryption))
        except SecretUnavailable as error:
            name = ErrorName.SECRET_NOT_FOUND if error.is_missing else ErrorName.SECRET_UNREADABLE
            return Failure(name, f"the function cannot be called: {error}")
        except (FunctionDamaged, DBAPIError) as error:
            if isinstance(error, FunctionDamaged) or is_damage(error):
                return Failure("FnF.RuntimeError", f"the function cannot be called: {error}")
            raise


def _look_up(connection: Connection, key: FunctionKey, encryption: Encryption) -> Lookup:
    found = look_up(connection, key)
    return with_secrets(connection, found, encryption) if isinstance(found, Endpoint) else found


def look_up(connection: Connection, key: FunctionKey) -> Lookup:
    """What `EndpointLookup.find` returns, as it is in the database now, without the values of secrets.

    Raises FunctionDamaged.
    """
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
