"""Flows and their definitions."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, Select, Text, bindparam, func, insert, literal_column, select, update
from sqlalchemy.exc import IntegrityError

from flowserver.store.schema.tables import definitions, flows
from flowserver.store.sql.bounded_pages import read_page
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prefixes import after_all
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import legible
from flowserver.store.sql.upserts import insert_of

OnRetriesExhausted = Literal["fail", "waitForRedrive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """A live flow with its current definition; instants in ms."""

    flow_id: str
    name: str
    description: str
    type: str
    role_arn: str
    execution_mode: str
    external_storage_location: str
    environment: str
    resource_group_id: str = ""
    definition_id: str
    definition: str
    created_at: int
    modified_at: int
    retention_days: int | None = None
    """How long ended executions are kept; 0 for ever, None for the server's setting."""
    on_retries_exhausted: OnRetriesExhausted = "fail"
    """Whether an execution whose step fails, and nothing catches it, fails or waits for a redrive."""


def _live(*, documents: bool = True) -> Select[Any]:
    """The query for live flows. Without `documents`, definitions are not read."""
    current = definitions.c.definition_id == flows.c.definition_id
    columns: list[Any] = [column for column in flows.c if column.name not in _HIDDEN]
    if not documents:
        columns = [_EMPTY.label(column.name) if column.name == "environment" else column for column in columns]
        return select(*columns, _EMPTY.label("definition")).where(flows.c.deleted_at.is_(None))
    return (
        select(*columns, func.coalesce(definitions.c.text, _EMPTY).label("definition"))
        .join(definitions, current, isouter=True)  # a flow whose definition is lost can still be updated
        .where(flows.c.deleted_at.is_(None))
    )


_EMPTY: ColumnElement[str] = literal_column("''", Text)
_HIDDEN = ("deleted_at", "last_version")


def _flow(row: Mapping[str, Any]) -> FlowRow:
    return FlowRow(**{name: legible(value) for name, value in row.items()})


_FIND_FLOWS = _live().where(among(flows.c.name, bindparam("names")))


def find_flow(connection: Connection, name: str, *, lock: bool = False) -> FlowRow | None:
    """The live flow with that name; with `lock` its row is locked until the transaction ends."""
    if lock:
        # A separate statement: after waiting for another transaction's change of definition_id, a joined query would
        # compare the changed flow with the old definition and find nothing (PostgreSQL; SQLite has one writer).
        live = (flows.c.name == name) & flows.c.deleted_at.is_(None)
        connection.execute(select(flows.c.flow_id).where(live).with_for_update())
    row = connection.execute(_live().where(flows.c.name == name)).one_or_none()
    return None if row is None else _flow(row._asdict())


def flow_exists(connection: Connection, name: str) -> bool:
    """Whether there is a live flow of that name."""
    live = (flows.c.name == name) & flows.c.deleted_at.is_(None)
    return connection.execute(select(flows.c.flow_id).where(live)).first() is not None


def find_flows(connection: Connection, names: Collection[str]) -> dict[str, FlowRow]:
    """The live flows with those names, by name."""
    rows = fetch_rows(connection, _FIND_FLOWS, {"names": texts(connection, sorted(names))})
    return {row.name: _flow(row._asdict()) for row in rows}


def list_flows(
    connection: Connection,
    *,
    from_name: str,
    limit: int,
    bytes_max: int,
    resource_group_id: str | None = None,
    name_prefix: str | None = None,
    documents: bool = True,
) -> tuple[list[FlowRow], str | None]:
    """Live flows by name, starting at `from_name`, and the name that the next page begins with; None after the last.

    A page has at most `limit` flows and `bytes_max` bytes, but always the first flow. With a resource group it has the
    flows of the group, with a prefix those whose names begin so. Without `documents`, definitions and environments are
    empty.
    """
    from_name = max(from_name, name_prefix or "")
    page = _live(documents=documents).where(flows.c.name >= from_name).order_by(flows.c.name)
    if resource_group_id is not None:
        page = page.where(flows.c.resource_group_id == resource_group_id)
    if name_prefix is not None and (end := after_all(name_prefix)) is not None:
        page = page.where(flows.c.name < end)
    rows, following = read_page(connection, page, limit, bytes_max, "name")
    return [_flow(row._asdict()) for row in rows], None if following is None else following.name


def count_flows(connection: Connection) -> int:
    """How many live flows there are."""
    return connection.execute(select(func.count()).select_from(flows).where(flows.c.deleted_at.is_(None))).scalar_one()


def insert_flow(connection: Connection, flow: FlowRow) -> bool:
    """Insert a flow and its definition; False if a live flow has the name."""
    try:
        with connection.begin_nested():
            columns = {column.name for column in flows.c if column.name not in _HIDDEN}
            connection.execute(insert(flows), {name: getattr(flow, name) for name in columns})
    except IntegrityError:
        return False
    put_definition(connection, flow)
    return True


def update_flow(connection: Connection, flow: FlowRow) -> bool:
    """Write a flow's changed fields and its definition, if that is new; False if the flow is deleted."""
    texts = ("description", "type", "role_arn", "external_storage_location", "environment", "definition_id")
    statement = (
        update(flows)
        .where(flows.c.flow_id == flow.flow_id, flows.c.deleted_at.is_(None))
        .values(
            {name: getattr(flow, name) for name in (*texts, "modified_at", "retention_days", "on_retries_exhausted")}
        )
    )
    if connection.execute(statement).rowcount == 0:
        return False
    put_definition(connection, flow)
    return True


def put_definition(connection: Connection, flow: FlowRow) -> None:
    """Insert the flow's definition unless it exists; another node may have inserted it just before."""
    row = {
        "definition_id": flow.definition_id,
        "flow_id": flow.flow_id,
        "text": flow.definition,
        "created_at": flow.modified_at,
    }
    connection.execute(insert_of(connection)(definitions).values(row).on_conflict_do_nothing())


def was_created(connection: Connection, flow_id: str) -> bool:
    """Whether there is a flow with that id, live or deleted."""
    return connection.execute(select(flows.c.flow_id).where(flows.c.flow_id == flow_id)).first() is not None


def delete_flow(connection: Connection, flow_id: str, now_ms: int) -> bool:
    """Delete the live flow with that id; False if there is none."""
    statement = update(flows).where(flows.c.flow_id == flow_id, flows.c.deleted_at.is_(None)).values(deleted_at=now_ms)
    return connection.execute(statement).rowcount > 0


def definition_id_of(flow_id: str, text: str) -> str:
    """The id of a definition text within its flow: equal texts have equal ids."""
    return hashlib.sha256(f"{flow_id}\n{text}".encode()).hexdigest()


def load_definition(connection: Connection, definition_id: str) -> str | None:
    """The text of a definition; None if there is none with that id."""
    return connection.execute(
        select(definitions.c.text).where(definitions.c.definition_id == definition_id)
    ).scalar_one_or_none()
