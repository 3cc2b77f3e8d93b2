"""Published versions of flows: their rows, and what uses them.

Publishing and deleting lock the row of the flow first, so there is one change of a flow's versions and aliases at a
time. A start or a redrive holds the version that it runs (`resolving`) until it has committed; so once a deletion has
locked the version, every execution that runs it can be seen.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, Row, Select, Text, delete, func, insert, literal_column, select, update

from flowserver.store.flows import FlowRow
from flowserver.store.schema.tables import RUNNING_VERSION, definitions, executions, flows
from flowserver.store.schema.version_tables import flow_aliases, flow_versions
from flowserver.store.sql.bounded_pages import read_page
from flowserver.store.sql.unreadable import legible


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """A published version; `created_at` in ms. A list leaves the definition empty."""

    version: int
    definition_id: str
    definition: str
    description: str
    created_at: int


def publish_version(connection: Connection, flow: FlowRow, description: str, now_ms: int) -> VersionRow:
    """Publish the definition of a flow that is locked, under the next number."""
    counted = update(flows).where(flows.c.flow_id == flow.flow_id).values(last_version=flows.c.last_version + 1)
    version = connection.execute(counted.returning(flows.c.last_version)).scalar_one()
    row = {
        "flow_id": flow.flow_id,
        "version": version,
        "definition_id": flow.definition_id,
        "description": description,
        "created_at": now_ms,
    }
    connection.execute(insert(flow_versions), row)
    del row["flow_id"]
    return VersionRow(definition=flow.definition, **row)


def newest_version(connection: Connection, flow_id: str) -> VersionRow | None:
    """The version with the highest number."""
    query = _versions(flow_id).order_by(flow_versions.c.version.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _version(row)


def find_version(connection: Connection, flow_id: str, version: int) -> VersionRow | None:
    """The version of that number."""
    row = connection.execute(_versions(flow_id).where(flow_versions.c.version == version)).one_or_none()
    return None if row is None else _version(row)


def list_versions(
    connection: Connection, flow_id: str, *, from_version: int | None, limit: int, bytes_max: int
) -> tuple[list[VersionRow], int | None]:
    """Versions without their definitions, the newest first, from `from_version` on (None: from the newest), and the
    number that the next page begins with; None after the last.
    """
    columns = (flow_versions.c.version, flow_versions.c.definition_id, flow_versions.c.description)
    query = select(*columns, flow_versions.c.created_at, _EMPTY.label("definition"))
    query = query.where(flow_versions.c.flow_id == flow_id).order_by(flow_versions.c.version.desc())
    if from_version is not None:
        query = query.where(flow_versions.c.version <= from_version)
    rows, following = read_page(connection, query, limit, bytes_max)
    return [_version(row) for row in rows], None if following is None else following.version


def count_versions(connection: Connection, flow_id: str) -> int:
    """How many versions a flow has."""
    query = select(func.count()).select_from(flow_versions).where(flow_versions.c.flow_id == flow_id)
    return connection.execute(query).scalar_one()


def hold_version(connection: Connection, flow_id: str, version: int) -> bool:
    """Lock the version until the transaction ends; waits for starts that run it. False if there is none."""
    key = (flow_versions.c.flow_id == flow_id) & (flow_versions.c.version == version)
    return connection.execute(select(flow_versions.c.version).where(key).with_for_update()).first() is not None


def alias_with(connection: Connection, flow_id: str, version: int) -> str | None:
    """The name of an alias that routes to the version, with any weight."""
    routed = (flow_aliases.c.version == version) | (flow_aliases.c.other_version == version)
    name = connection.execute(
        select(flow_aliases.c.name).where(flow_aliases.c.flow_id == flow_id, routed).limit(1)
    ).scalar()
    return None if name is None else str(legible(name))


def execution_with(connection: Connection, flow_id: str, version: int) -> str | None:
    """The name of a running execution that runs the version."""
    own = (executions.c.flow_id == flow_id) & (executions.c.flow_version == version)
    name = connection.execute(select(executions.c.name).where(own, RUNNING_VERSION).limit(1)).scalar()
    return None if name is None else str(legible(name))


def delete_version(connection: Connection, flow_id: str, version: int) -> None:
    """Delete a version. Its number is not used again; retention deletes its definition once nothing refers to it."""
    key = (flow_versions.c.flow_id == flow_id) & (flow_versions.c.version == version)
    connection.execute(delete(flow_versions).where(key))


def delete_versions_of(connection: Connection, flow_id: str) -> None:
    """Delete all aliases and versions of a flow that is locked."""
    for table in (flow_aliases, flow_versions):
        connection.execute(delete(table).where(table.c.flow_id == flow_id))


def _versions(flow_id: str) -> Select[tuple[int, str, str, int, str]]:
    known = definitions.c.definition_id == flow_versions.c.definition_id
    return (
        select(
            flow_versions.c.version,
            flow_versions.c.definition_id,
            flow_versions.c.description,
            flow_versions.c.created_at,
            func.coalesce(definitions.c.text, _EMPTY).label("definition"),
        )
        .join(definitions, known, isouter=True)  # a version whose definition is lost can still be shown and deleted
        .where(flow_versions.c.flow_id == flow_id)
    )


def _version(row: Row[tuple[int, str, str, int, str]]) -> VersionRow:
    return VersionRow(**{name: legible(value) for name, value in row._mapping.items()})


_EMPTY = literal_column("''", Text)
