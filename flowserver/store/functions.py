"""The registry of functions."""

import logging
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, tuple_

from flowserver.base.json_values import InvalidJson, dump_json, load_stored_json
from flowserver.store.schema.tables import functions
from flowserver.store.sql.bounded_pages import read_page
from flowserver.store.sql.unreadable import checks_of, damage_in, legible
from flowserver.store.sql.upserts import insert_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """A registered function: where its calls go. `service` may contain a qualifier (`s.prod`)."""

    service: str
    function: str
    url: str = field(repr=False)  # URLs and headers may hold secrets: keep them out of logs
    headers: dict[str, str] = field(repr=False)
    timeout_seconds: int
    created_at: int
    modified_at: int
    initialize_url: str | None = field(default=None, repr=False)
    """Called before a node's first call of the function."""
    pre_stop_url: str | None = field(default=None, repr=False)
    """Called when a running invocation is stopped."""
    hook_seconds: int | None = None
    """Time limit of each of these two calls; None for the default."""
    concurrency_max: int | None = None
    """Concurrent calls per server; None for the server's limit."""
    waiting_max: int | None = None
    """Calls that wait for one of these slots; None for the default."""


class FunctionDamaged(Exception):
    """The stored registration is damaged; registering the function again replaces it."""


_CHECKS = checks_of(functions.c)


def _function(row: Row[Any]) -> FunctionRow:
    damage = damage_in(row, _CHECKS)
    if damage is None:
        try:
            return FunctionRow(**{**row._mapping, "headers": _headers(row.headers)})
        except ValueError as error:
            damage = f"its headers cannot be read: {error}"
    raise FunctionDamaged(f"the registration of {legible(row.service)}/{legible(row.function)} is damaged: {damage}")


def _headers(text: str) -> dict[str, str]:
    headers = load_stored_json(text)
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise InvalidJson("not a JSON object of texts")
    return headers


def _listed(row: Row[Any]) -> FunctionRow:
    try:
        return _function(row)
    except FunctionDamaged as damaged:
        log.warning("%s; the list shows the function without its headers and settings", damaged)
    return FunctionRow(
        service=row.service,
        function=row.function,
        url=str(legible(row.url)),
        headers={},
        timeout_seconds=_number(row.timeout_seconds),
        created_at=_number(row.created_at),
        modified_at=_number(row.modified_at),
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _key(service: str, function: str) -> Any:
    return (functions.c.service == service) & (functions.c.function == function)


def find_function(connection: Connection, service: str, function: str, *, lock: bool = False) -> FunctionRow | None:
    """The registered function, which with `lock` only this transaction changes; None if it is not registered.

    Raises FunctionDamaged.
    """
    query = select(functions).where(_key(service, function))
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else _function(row)


def service_is_known(connection: Connection, service: str) -> bool:
    """Whether any function of the service is registered, with or without a qualifier."""
    qualified = func.substr(functions.c.service, 1, len(service) + 1) == f"{service}."
    ours = (functions.c.service == service) | qualified
    return connection.execute(select(func.count()).select_from(functions).where(ours)).scalar_one() > 0


def list_functions(
    connection: Connection, *, after: tuple[str, str] | None, limit: int, bytes_max: int
) -> tuple[list[FunctionRow], bool]:
    """Functions by service and name, after `after`, and whether there are more.

    A page has at most `limit` functions and `bytes_max` bytes, but always the first one. A damaged function is listed
    without its headers and settings.
    """
    query = select(functions).order_by(functions.c.service, functions.c.function)
    if after is not None:
        query = query.where(tuple_(functions.c.service, functions.c.function) > after)
    rows, following = read_page(connection, query, limit, bytes_max, "service", "function")
    return [_listed(row) for row in rows], following is not None


def put_function(connection: Connection, row: FunctionRow) -> bool:
    """Register or replace a function; True if it is new. A replaced function keeps its `created_at`."""
    changing = asdict(row) | {"headers": dump_json(row.headers)}
    created_at = changing.pop("created_at")
    key = {name: changing.pop(name) for name in ("service", "function")}
    statement = insert_of(connection)(functions).values(**key, **changing, created_at=created_at)
    added = statement.on_conflict_do_nothing().returning(functions.c.service)
    if connection.execute(added).one_or_none() is not None:
        return True
    # An upsert, because an update would have no effect if another node has just deleted the function.
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=changing))
    return False


def delete_function(connection: Connection, service: str, function: str) -> bool:
    """Delete a function from the registry; False if it is not registered."""
    return connection.execute(delete(functions).where(_key(service, function))).rowcount > 0
