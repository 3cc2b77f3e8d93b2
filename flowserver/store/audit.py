"""Records of the audit: added, finished, listed, and deleted when they are old."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, delete, select, update

from flowserver.store.schema.audit_tables import audit_records
from flowserver.store.sql.upserts import insert_of

OK: Final = "ok"
"""The result of what was done. Any other is the code of an error, or "" while it is not known."""

SCANNED_MAX: Final = 20_000
"""Records that one page of a filtered list reads."""


OBJECT_CHARACTERS_MAX: Final = 512
"""Longer names of objects are cut; no object that exists has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One operation, or refusals of one kind; instants in ms. What does not apply is ""."""

    record_id: str
    at: int
    key_id: str = ""
    label: str = ""
    """Of the key; of a command, the user of the operating system."""
    api: str = ""
    remote: str = ""
    request_id: str = ""
    operation: str
    object: str = ""
    result: str = ""
    count: int = 1
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which records to list; None for all. Instants in ms."""

    key_id: str | None = None
    operation: str | None = None
    object: str | None = None
    """The path of the object, or of an object that it is part of."""
    result: str | None = None
    begin_ms: int | None = None
    end_ms: int | None = None
    """Records of this instant and later ones are left out."""


def record_id_at(at_ms: int) -> str:
    """A new id for a record of that instant; ids sort by their instants."""
    return f"{_first_id(at_ms)}-{secrets.token_hex(8)}"


def instant_of(record_id: str) -> int:
    """The instant (ms) of a record with that id."""
    return int(record_id[:12], 16)


def begin_record(connection: Connection, record: AuditRecord) -> None:
    """Add a record; nothing if it was added, by a try whose answer was lost."""
    connection.execute(insert_of(connection)(audit_records).on_conflict_do_nothing(), asdict(record))


def finish_record(connection: Connection, record_id: str, result: str) -> None:
    """Say how the operation of a record ended."""
    mine = (audit_records.c.record_id == record_id) & (audit_records.c.result == "")
    connection.execute(update(audit_records).where(mine).values(result=result))


def count_refusals(connection: Connection, records: Sequence[AuditRecord]) -> None:
    """Add records of refusals, or bring their counts up to date."""
    statement = insert_of(connection)(audit_records)
    latest = {"count": statement.excluded.count, "until": statement.excluded.until}
    statement = statement.on_conflict_do_update(index_elements=[audit_records.c.record_id], set_=latest)
    connection.execute(statement, [asdict(record) for record in records])


def list_records(
    connection: Connection, wanted: AuditFilter, *, before: str | None, limit: int
) -> tuple[list[AuditRecord], str | None]:
    """Records before that id, the newest first, and the id of the last record that was read, unless there are no more.

    A page may have less than `limit` records, even none, before the last page.
    """
    found: list[AuditRecord] = []
    scanned, last = 0, None
    with connection.execute(_newest_first(wanted, before).execution_options(yield_per=500)) as rows:
        for row in rows:
            if len(found) == limit or scanned == SCANNED_MAX:
                return found, last
            scanned, last = scanned + 1, row.record_id
            if _matches(row, wanted):
                found.append(AuditRecord(**row._mapping))
    return found, None


def _newest_first(wanted: AuditFilter, before: str | None) -> Select[Any]:
    place = audit_records.c.record_id
    query = select(*(audit_records.c[field.name] for field in fields(AuditRecord))).order_by(place.desc())
    ends = [before, None if wanted.end_ms is None else _first_id(wanted.end_ms)]
    if known := [end for end in ends if end is not None]:
        query = query.where(place < min(known))
    if wanted.begin_ms is not None:
        query = query.where(place >= _first_id(wanted.begin_ms))
    return query.limit(SCANNED_MAX + 1)


def _matches(row: Row[Any], wanted: AuditFilter) -> bool:
    exact = ((row.key_id, wanted.key_id), (row.operation, wanted.operation), (row.result, wanted.result))
    if any(value is not None and value != found for found, value in exact):
        return False
    within = wanted.object
    return within is None or row.object == within or row.object.startswith(f"{within}/")


def first_kept(connection: Connection, *, from_ms: int, kept_max: int) -> str:
    """The id before which all records may be deleted: those from before the instant, and those beyond `kept_max`."""
    place = audit_records.c.record_id
    oldest = select(place).order_by(place.desc()).offset(kept_max - 1).limit(1)
    return max(_first_id(max(0, from_ms)), connection.execute(oldest).scalar_one_or_none() or "")


def delete_records(connection: Connection, *, before: str, at_once: int) -> int:
    """Delete the oldest records before that id, `at_once` at most; returns how many."""
    place = audit_records.c.record_id
    # PostgreSQL: without rows that another node is deleting; a CTE, since it may read a subquery several times.
    old = select(place).where(place < before).order_by(place).limit(at_once)
    some = old.with_for_update(skip_locked=True).cte("some")
    deleted = delete(audit_records).where(place.in_(select(some))).returning(place)
    return len(connection.execute(deleted).all())


def _first_id(at_ms: int) -> str:
    """A text that no id of an earlier instant sorts after, and none of this instant or a later one before."""
    return f"{at_ms:012x}"
