"""Turns of schedules: which are due, and the transaction that commits one.

A node reads a schedule, decides, and commits the start and the changed row together. The transaction locks the row and
compares its version with the version it was decided at, so of two nodes that decide on one tick the first commits, and
the other finds its turn stale.
"""

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from sqlalchemy import Connection, bindparam, func, select, update

from flowserver.machine.schedules.state import Schedule
from flowserver.store.schedules.rows import ScheduleDamaged, memory_text, schedule_of
from flowserver.store.schema.schedule_tables import WAKES, schedules
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.prepared import execute_many, fetch_rows

log = logging.getLogger(__name__)

DAMAGED_MS = 60_000
"""When a damaged schedule is looked at again: it must not be the first that is due for ever."""


class ScheduleTurn(msgspec.Struct, frozen=True):
    """What a start brings along that a schedule makes: its row changes with the start, or neither does."""

    before: Schedule
    after: Schedule
    if_taken: Schedule
    """Its row if the execution's name is taken, because the tick has run before."""


def due_keys(connection: Connection, until_ms: int, limit: int) -> list[tuple[str, int]]:
    """The ids of up to `limit` schedules whose turn is due by `until_ms`, with its instant (ms), earliest first.

    No payload is read: it may have 64 KiB, and a node takes the turns of its own share only.
    """
    query = select(schedules.c.schedule_id, schedules.c.wake_at).where(WAKES & (schedules.c.wake_at <= until_ms))
    return [
        (row.schedule_id, row.wake_at) for row in connection.execute(query.order_by(schedules.c.wake_at).limit(limit))
    ]


def read_schedules(connection: Connection, schedule_ids: Collection[str]) -> tuple[list[Schedule], list[str]]:
    """Those of the schedules that exist, and the ids of those that are damaged; each of these is logged."""
    found, damaged_ids = [], []
    for row in connection.execute(select(schedules).where(_LISTED), {"listed": texts(connection, list(schedule_ids))}):
        try:
            found.append(schedule_of(row))
        except ScheduleDamaged as damaged:
            log.error("%s", damaged)
            damaged_ids.append(row.schedule_id)
    return found, damaged_ids


def next_turn_at(connection: Connection, after_ms: int) -> int | None:
    """The earliest instant (ms) after `after_ms` at which a turn is due."""
    query = select(schedules.c.wake_at).where(WAKES, schedules.c.wake_at > after_ms)
    return connection.execute(query.order_by(schedules.c.wake_at).limit(1)).scalar()


def later_schedules(connection: Connection, now_ms: int, after: str, limit: int) -> list[Schedule]:
    """Schedules whose turn is due later than `now_ms`, by id after `after`. Damaged rows are left out."""
    query = select(schedules).where(WAKES, schedules.c.wake_at > now_ms, schedules.c.schedule_id > after)
    found = []
    for row in connection.execute(query.order_by(schedules.c.schedule_id).limit(limit)):
        with suppress(ScheduleDamaged):
            found.append(schedule_of(row))
    return found


def overdue_schedules(connection: Connection, now_ms: int) -> tuple[int, int | None]:
    """How many schedules have a turn that is due and not taken, and since when the earliest of them is due (ms)."""
    query = select(func.count(), func.min(schedules.c.wake_at)).where(WAKES, schedules.c.wake_at <= now_ms)
    count, earliest = connection.execute(query).one()
    return count, earliest


def hold_versions(connection: Connection, schedule_ids: Collection[str]) -> dict[str, int]:
    """The versions of those schedules that exist; only this transaction changes them until it ends."""
    rows = fetch_rows(connection, _HOLD, {"listed": texts(connection, sorted(schedule_ids))})
    return {row.schedule_id: row.version for row in rows}


def save_turns(connection: Connection, changed: Sequence[Schedule]) -> int:
    """Write what turns have changed, each under the next version; returns how many were still at their version."""
    return execute_many(connection, _SAVE, [_turn_row(each) for each in changed])


def save_current_turns(connection: Connection, changed: Sequence[Schedule]) -> set[str]:
    """As `save_turns`, but leaves out the schedules that have changed meanwhile; returns the ids of those it saved."""
    versions = hold_versions(connection, [each.schedule_id for each in changed])
    current = [each for each in changed if versions.get(each.schedule_id) == each.version]
    save_turns(connection, current)
    return {each.schedule_id for each in current}


def put_off_damaged(connection: Connection, schedule_ids: Collection[str], until_ms: int) -> None:
    """Look at damaged rows again then."""
    statement = update(schedules).where(_LISTED).values(wake_at=until_ms)
    connection.execute(statement, {"listed": texts(connection, sorted(schedule_ids))})


def _turn_row(schedule: Schedule) -> dict[str, Any]:
    return {
        "b_id": schedule.schedule_id,
        "b_version": schedule.version,
        "is_enabled": schedule.is_enabled,
        "note": schedule.note,
        "actions_left": schedule.actions_left,
        "next_at": schedule.next_at,
        "wake_at": schedule.wake_at,
        "version": schedule.version + 1,
        "memory": memory_text(schedule.memory),
    }


_LISTED = among(schedules.c.schedule_id, bindparam("listed"))
_HOLD = (
    select(schedules.c.schedule_id, schedules.c.version).where(_LISTED).order_by(schedules.c.schedule_id)
).with_for_update()
_SAVE = update(schedules).where(
    schedules.c.schedule_id == bindparam("b_id"), schedules.c.version == bindparam("b_version")
)
