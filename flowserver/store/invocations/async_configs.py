"""Configurations of asynchronous invocations, stored as clients sent them; `async_settings` reads their meaning.

A function may have one configuration for each qualifier, including "".
"""

import logging
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from flowserver.base.json_values import InvalidJson, JsonObject, dump_json, load_stored_json
from flowserver.store.schema.tables import async_configs
from flowserver.store.sql.bounded_pages import read_page
from flowserver.store.sql.unreadable import legible
from flowserver.store.sql.upserts import insert_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncConfigRow:
    """A configuration: `document` holds the fields that were set. Instants in ms."""

    service: str
    function: str
    qualifier: str
    document: JsonObject
    created_at: int
    modified_at: int


def put_async_config(connection: Connection, row: AsyncConfigRow) -> AsyncConfigRow:
    """Set or replace a configuration and return the stored one: a replaced one keeps its `created_at`."""
    key = {"service": row.service, "function": row.function, "qualifier": row.qualifier}
    changing = {"document": dump_json(row.document), "modified_at": row.modified_at}
    statement = insert_of(connection)(async_configs).values(**key, **changing, created_at=row.created_at)
    replacing = statement.on_conflict_do_update(index_elements=list(key), set_=changing)
    return _config(connection.execute(replacing.returning(*async_configs.c)).one())


def find_async_config(connection: Connection, service: str, function: str, qualifier: str) -> AsyncConfigRow | None:
    """The configuration of a function under exactly this qualifier."""
    row = connection.execute(select(async_configs).where(_key(service, function, qualifier))).one_or_none()
    return None if row is None else _config(row)


def list_async_configs(
    connection: Connection, service: str, function: str, *, from_qualifier: str, limit: int, bytes_max: int
) -> tuple[list[AsyncConfigRow], str | None]:
    """A function's configurations by qualifier, from `from_qualifier` on, and the qualifier that starts the next page.

    A page has at most `limit` configurations and `bytes_max` bytes, but always the first one.
    """
    of_function = (async_configs.c.service == service) & (async_configs.c.function == function)
    query = select(async_configs).where(of_function, async_configs.c.qualifier >= from_qualifier)
    query = query.order_by(async_configs.c.qualifier)
    rows, following = read_page(connection, query, limit, bytes_max, "qualifier")
    return [_config(row) for row in rows], None if following is None else following.qualifier


def delete_async_config(connection: Connection, service: str, function: str, qualifier: str) -> bool:
    """Delete a configuration; False if there is none."""
    return connection.execute(delete(async_configs).where(_key(service, function, qualifier))).rowcount > 0


def _key(service: str, function: str, qualifier: str) -> Any:
    of_function = (async_configs.c.service == service) & (async_configs.c.function == function)
    return of_function & (async_configs.c.qualifier == qualifier)


def _config(row: Row[Any]) -> AsyncConfigRow:
    return AsyncConfigRow(**{**row._mapping, "document": _document(row)})


def _document(row: Row[Any]) -> JsonObject:
    try:
        document = load_stored_json(row.document)
    except (InvalidJson, TypeError):
        document = None
    if isinstance(document, dict):
        return document
    log.warning("the configuration of %s/%s is damaged and read as empty", row.service, legible(row.function))
    return {}
