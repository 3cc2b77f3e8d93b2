"""The rows of aliases. Changes lock the row of the flow first (see `versions`)."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from flowserver.machine.versions.routing import Routing
from flowserver.store.schema.version_tables import flow_aliases
from flowserver.store.sql.bounded_pages import read_page
from flowserver.store.sql.unreadable import legible


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRow:
    """An alias of a flow; instants in ms."""

    name: str
    description: str
    routing: Routing
    created_at: int
    modified_at: int


def insert_alias(connection: Connection, flow_id: str, alias: AliasRow) -> None:
    """Add an alias to a flow that is locked."""
    connection.execute(insert(flow_aliases), {"flow_id": flow_id, "name": alias.name, **_columns(alias)})


def update_alias(connection: Connection, flow_id: str, alias: AliasRow) -> None:
    """Write all of an alias of a flow that is locked."""
    connection.execute(update(flow_aliases).where(_key(flow_id, alias.name)).values(_columns(alias)))


def find_alias(connection: Connection, flow_id: str, name: str) -> AliasRow | None:
    """The alias of that name."""
    row = connection.execute(select(flow_aliases).where(_key(flow_id, name))).one_or_none()
    return None if row is None else _alias(row)


def list_aliases(
    connection: Connection, flow_id: str, *, from_name: str, limit: int, bytes_max: int
) -> tuple[list[AliasRow], str | None]:
    """Aliases by name, from `from_name` on, and the name that the next page begins with; None after the last."""
    query = select(flow_aliases).where(flow_aliases.c.flow_id == flow_id, flow_aliases.c.name >= from_name)
    rows, following = read_page(connection, query.order_by(flow_aliases.c.name), limit, bytes_max, "name")
    return [_alias(row) for row in rows], None if following is None else following.name


def count_aliases(connection: Connection, flow_id: str) -> int:
    """How many aliases a flow has."""
    query = select(func.count()).select_from(flow_aliases).where(flow_aliases.c.flow_id == flow_id)
    return connection.execute(query).scalar_one()


def delete_alias(connection: Connection, flow_id: str, name: str) -> None:
    """Delete an alias; executions that it has started go on."""
    connection.execute(delete(flow_aliases).where(_key(flow_id, name)))


def _key(flow_id: str, name: str) -> Any:
    return (flow_aliases.c.flow_id == flow_id) & (flow_aliases.c.name == name)


def _columns(alias: AliasRow) -> dict[str, Any]:
    return {
        "description": alias.description,
        "version": alias.routing.version,
        "other_version": alias.routing.other_version,
        "other_weight": alias.routing.other_weight,
        "created_at": alias.created_at,
        "modified_at": alias.modified_at,
    }


def _alias(row: Row[Any]) -> AliasRow:
    return AliasRow(
        name=legible(row.name),
        description=legible(row.description),
        routing=Routing(row.version, row.other_version, row.other_weight),
        created_at=row.created_at,
        modified_at=row.modified_at,
    )
