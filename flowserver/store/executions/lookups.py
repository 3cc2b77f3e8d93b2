"""Small look-ups of executions: ids, names, statuses and definitions of some, and counts."""

from sqlalchemy import Connection, bindparam, func, select

from flowserver.machine.state import Status
from flowserver.store.executions.loading import likely_status
from flowserver.store.schema.tables import PARKED, RUNNING, WAITING_FOR_REDRIVE, executions, flows
from flowserver.store.sql.list_parameter import among, among_pairs, pairs, texts
from flowserver.store.sql.prepared import fetch_rows
from flowserver.store.sql.unreadable import legible


def find_id(connection: Connection, flow_id: str, name: str) -> str | None:
    """The id of the execution of that name."""
    query = select(executions.c.execution_id).where(executions.c.flow_id == flow_id, executions.c.name == name)
    found: str | None = legible(connection.execute(query).scalar_one_or_none())
    return found


def find_id_by_names(connection: Connection, flow_name: str, name: str) -> str | None:
    """The id of the execution of that name of the live flow of that name."""
    rows = fetch_rows(connection, _FIND_ID, {"b_flow": flow_name, "b_name": name})
    found: str | None = legible(rows[0].execution_id) if rows else None
    return found


_FIND_ID = (
    select(executions.c.execution_id)
    .join(flows, flows.c.flow_id == executions.c.flow_id)
    .where(flows.c.name == bindparam("b_flow"), flows.c.deleted_at.is_(None), executions.c.name == bindparam("b_name"))
)


def definition_of(connection: Connection, execution_id: str) -> str | None:
    """The id of the definition that the execution runs; None if there is no such execution."""
    rows = fetch_rows(connection, _FIND_DEFINITION, {"b_id": execution_id})
    found: str | None = rows[0].definition_id if rows else None
    return found


_FIND_DEFINITION = select(executions.c.definition_id).where(executions.c.execution_id == bindparam("b_id"))


def flow_name_of(connection: Connection, execution_id: str) -> str | None:
    """The name of the flow of an execution; None if there is no such execution."""
    query = select(flows.c.name).join(executions, executions.c.flow_id == flows.c.flow_id)
    found: str | None = connection.execute(query.where(executions.c.execution_id == execution_id)).scalar_one_or_none()
    return found


def find_names(connection: Connection, asked: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, Status]]:
    """The (flow id, name) pairs that are taken, each with the execution's id and status."""
    rows = fetch_rows(connection, _FIND_NAMES, {"asked": pairs(asked)})
    return {(row.flow_id, row.name): (row.execution_id, likely_status(row.status, row.stopped_at)) for row in rows}


_FIND_NAMES = select(
    executions.c.flow_id, executions.c.name, executions.c.execution_id, executions.c.status, executions.c.stopped_at
).where(among_pairs(executions.c.flow_id, executions.c.name, bindparam("asked")))


def find_statuses(connection: Connection, execution_ids: list[str]) -> dict[str, Status]:
    """The statuses of the executions that exist, by id."""
    if not execution_ids:
        return {}
    rows = fetch_rows(connection, _FIND_STATUSES, {"ids": texts(connection, execution_ids)})
    return {row.execution_id: likely_status(row.status, row.stopped_at) for row in rows}


_FIND_STATUSES = select(executions.c.execution_id, executions.c.status, executions.c.stopped_at).where(
    among(executions.c.execution_id, bindparam("ids"))
)


def find_paths(connection: Connection, execution_ids: list[str]) -> dict[str, str]:
    """FLOW/NAME of those of these executions that exist, by id."""
    ids = {"ids": texts(connection, execution_ids)}
    query = select(executions.c.execution_id, executions.c.flow_name, executions.c.name)
    rows = connection.execute(query.where(among(executions.c.execution_id, bindparam("ids"))), ids)
    return {row.execution_id: f"{row.flow_name}/{row.name}" for row in rows}


def is_running(connection: Connection, execution_id: str) -> bool:
    """Whether the execution runs, parked or not; False if no execution has the id."""
    rows = fetch_rows(connection, _FIND_STATE, {"b_id": execution_id})
    return any(likely_status(row.status, row.stopped_at) is Status.RUNNING for row in rows)


_FIND_STATE = select(executions.c.status, executions.c.stopped_at).where(executions.c.execution_id == bindparam("b_id"))


def count_running(connection: Connection) -> int:
    """How many executions have not ended."""
    return connection.execute(select(func.count()).select_from(executions).where(RUNNING)).scalar_one()


def count_waiting_for_redrive(connection: Connection) -> int:
    """How many executions have steps that wait for a redrive."""
    return connection.execute(select(func.count()).select_from(executions).where(WAITING_FOR_REDRIVE)).scalar_one()


def count_parked(connection: Connection) -> int:
    """How many running executions are parked."""
    return connection.execute(select(func.count()).select_from(executions).where(PARKED, RUNNING)).scalar_one()
