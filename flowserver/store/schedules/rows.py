"""Schedules by their flow and name: kept, listed and deleted."""

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, func, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from flowserver.machine.schedules.state import Memory, Overlap, Schedule
from flowserver.store.schema.schedule_tables import schedules
from flowserver.store.sql.bounded_pages import read_page
from flowserver.store.sql.prefixes import after_all
from flowserver.store.sql.unreadable import checks_of, damage_in, legible

log = logging.getLogger(__name__)

_CHECKS = checks_of(schedules.c)
_BOOLEANS = ("is_enabled", "pauses_on_failure")


class ScheduleDamaged(Exception):
    """The stored row makes no sense; deleting the schedule removes it."""


def schedule_of(row: Row[Any]) -> Schedule:
    """The schedule of a row; raises ScheduleDamaged."""
    damage = damage_in(row, _CHECKS)
    if damage is None:
        try:
            memory = msgspec.json.decode(row.memory, type=Memory)
            return Schedule(**{**row._mapping, "overlap": Overlap(row.overlap), "memory": memory})
        except ValueError as error:
            damage = str(error)
    raise ScheduleDamaged(f"schedule {legible(row.name)} of flow {legible(row.flow_name)} is damaged: {damage}")


def check_schedule(row: Row[Any]) -> None:
    """Raises ScheduleDamaged for a row that makes no sense, or has something to do and no reason to wake up."""
    schedule = schedule_of(row)
    memory = schedule.memory
    waits = memory.triggers or memory.buffered or memory.backfills
    if schedule.is_enabled and schedule.next_at is None and schedule.actions_left != 0:
        raise ScheduleDamaged("it is enabled and has no next tick")
    if schedule.wake_at is None and (waits or schedule.next_at is not None):
        raise ScheduleDamaged("it has something to do and no reason to wake up")


def row_of(schedule: Schedule) -> dict[str, Any]:
    """The columns of a schedule."""
    row = msgspec.structs.asdict(schedule)
    return row | {"overlap": str(schedule.overlap), "memory": memory_text(schedule.memory)}


def memory_text(memory: Memory) -> str:
    """What a schedule remembers, as JSON text."""
    return msgspec.json.encode(memory).decode()


def insert_schedule(connection: Connection, schedule: Schedule) -> bool:
    """Add a schedule; False if the flow has one of that name."""
    try:
        with connection.begin_nested():
            connection.execute(insert(schedules), row_of(schedule))
    except IntegrityError:
        return False
    return True


def find_schedule(connection: Connection, flow_name: str, name: str, *, lock: bool = False) -> Schedule | None:
    """The schedule, which with `lock` only this transaction changes; raises ScheduleDamaged."""
    query = select(schedules).where(_key(flow_name, name))
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else schedule_of(row)


def list_schedules(
    connection: Connection,
    *,
    flow_name: str | None,
    flows: str = "",
    begin: tuple[str, str],
    limit: int,
    bytes_max: int,
) -> tuple[list[Schedule], tuple[str, str] | None]:
    """Schedules by flow and name from `begin` on, and where the next page begins.

    They are those of a flow, or of all flows whose names begin with `flows`. The page has at most `limit` and, from the
    second on, `bytes_max` bytes. Damaged rows are left out.
    """
    query = select(schedules).order_by(schedules.c.flow_name, schedules.c.name)
    if flow_name is None:
        query = query.where(tuple_(schedules.c.flow_name, schedules.c.name) >= tuple_(*max(begin, (flows, ""))))
        if (end := after_all(flows)) is not None:
            query = query.where(schedules.c.flow_name < end)
    else:
        query = query.where(schedules.c.flow_name == flow_name, schedules.c.name >= begin[1])
    rows, following = read_page(connection, query, limit, bytes_max, "flow_name", "name")
    return _readable(rows), None if following is None else (following.flow_name, following.name)


def update_schedule(connection: Connection, schedule: Schedule) -> None:
    """Write all of a schedule that was found with `lock`, under the next version."""
    row = row_of(schedule)
    row["version"] = schedule.version + 1
    connection.execute(update(schedules).where(schedules.c.schedule_id == row.pop("schedule_id")).values(row))


def delete_schedule(connection: Connection, flow_name: str, name: str) -> bool:
    """Delete a schedule; False if there is none."""
    return connection.execute(delete(schedules).where(_key(flow_name, name))).rowcount > 0


def delete_schedules_of(connection: Connection, flow_name: str, flow_id: str) -> None:
    """Delete all schedules of a flow."""
    connection.execute(delete(schedules).where(schedules.c.flow_name == flow_name, schedules.c.flow_id == flow_id))


def count_schedules(connection: Connection, flow_name: str) -> int:
    """How many schedules a flow has."""
    query = select(func.count()).select_from(schedules).where(schedules.c.flow_name == flow_name)
    return connection.execute(query).scalar_one()


def _readable(rows: Sequence[Row[Any]]) -> list[Schedule]:
    found = []
    for row in rows:
        try:
            found.append(schedule_of(row))
        except ScheduleDamaged as damaged:
            log.warning("%s; it is left out of a list", damaged)
    return found


def _key(flow_name: str, name: str) -> Any:
    return (schedules.c.flow_name == flow_name) & (schedules.c.name == name)
