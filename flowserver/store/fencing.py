"""After a restore by the database's own programs: what it must not undo, and what it makes happen again.

Both databases are read: the one before the restore, and the restored one, which continues from the moment of the
backup. `sqlite_restore` does the same for a SQLite file, and also for tables of other versions.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, func, select, update

from flowserver.store.access_keys import KEYS_SEEN, Admission, keep_secret, read_admission
from flowserver.store.database_copy import hold_off_servers
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.sign_in_tables import sign_in_links
from flowserver.store.schema.tables import access_keys, executions, histories, nonces
from flowserver.store.sql.database import Database
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.upserts import insert_of

SHOWN_MAX: Final = 20
"""How many executions and how many invocations are shown; there may be any number."""

ROWS_AT_ONCE: Final = 5_000


@dataclass(frozen=True, slots=True)
class Callers:
    """Those of one kind, in the order of their names."""

    count: int
    shown: list[str]
    """The first of them, at most a few."""


@dataclass(frozen=True, slots=True)
class CalledSince:
    """What of the old database called functions with calls of which the backup does not know."""

    executions: Callers
    """Shown as `flow/name`."""

    invocations: Callers
    """Asynchronous invocations by programs, shown as `service/function/invocation-id`; not those of executions."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """What was carried over, and what happens again."""

    disabled_keys: int
    """Keys that were disabled since the backup, and are disabled now."""

    nonces: int
    """Those of the old database, all of which are used in the restored one, too."""
    called_since: CalledSince


def fence(before: Database, restored: Database) -> Fenced:
    """Carry over to `restored` what the restore must not undo, in one transaction, and compare the two.

    Both must have this version's schema, and no server may use them: on SQLite the caller holds their locks. Raises
    CopyRefused if a server is connected, and DBAPIError if a database fails.
    """
    with before.read() as reading, restored.write() as writing:
        for connection, database in ((reading, before), (writing, restored)):
            hold_off_servers(connection, database)
        disabled = _disable_keys(reading, writing)
        used = _add_nonces(reading, writing)
        if read_admission(reading) is not Admission.OPEN:
            keep_secret(writing, KEYS_SEEN, "yes")
        writing.execute(delete(sign_in_links))  # those of the backup may have been used since
        return Fenced(disabled, used, _called_since(reading, writing))


def _disable_keys(before: Connection, restored: Connection) -> int:
    keys, at = access_keys.c, access_keys.c.disabled_at
    disabled = select(keys.access_key_id.label("b_id"), at.label("at")).where(at.is_not(None))
    change = (
        update(access_keys)
        .where(keys.access_key_id == bindparam("b_id"), at.is_(None))
        .values(disabled_at=bindparam("at"))
    )
    return sum(restored.execute(change, dict(row)).rowcount for row in before.execute(disabled).mappings())


def _add_nonces(before: Connection, restored: Connection) -> int:
    add = insert_of(restored)(nonces).on_conflict_do_nothing()
    count = 0
    for page in _pages(before, select(nonces)):
        restored.execute(add, page)
        count += len(page)
    return count


def _called_since(before: Connection, restored: Connection) -> CalledSince:
    return CalledSince(
        _first_few(_calling_executions(before, restored)), _first_few(_calling_invocations(before, restored))
    )


def _first_few(named: Iterator[tuple[str, ...]]) -> Callers:
    count = 0

    def counted() -> Iterator[tuple[str, ...]]:
        nonlocal count
        for each in named:
            count += 1
            yield each

    shown = heapq.nsmallest(SHOWN_MAX, counted())
    return Callers(count, ["/".join(names) for names in shown])


def _calling_executions(before: Connection, restored: Connection) -> Iterator[tuple[str, ...]]:
    """Flow and name of each execution that has gone on since the backup, and ordered a call meanwhile."""
    shown = select(*(executions.c[name] for name in ("execution_id", "flow_name", "name", "version")))
    for page in _pages(before, shown):
        ids = [row["execution_id"] for row in page]
        known = {row.execution_id: row for row in restored.execute(_KNOWN, {"ids": texts(restored, ids)})}
        changed = [each for each in ids if each not in known]
        changed += [row["execution_id"] for row in page if _has_changed(row, known)]
        found = before.execute(_LAST_CALLS, {"ids": texts(before, changed)}) if changed else ()
        calling = {each for each, last in found if each not in known or last >= known[each].next_event_id}
        yield from ((row["flow_name"], row["name"]) for row in page if row["execution_id"] in calling)


def _calling_invocations(before: Connection, restored: Connection) -> Iterator[tuple[str, ...]]:
    """Service, function and id of each invocation by a program that has begun an attempt since the backup."""
    for page in _pages(before, _CALLED):
        keys = [row["invocation_key"] for row in page]
        found = restored.execute(_ATTEMPTS, {"keys": texts(restored, keys)})
        known = {row.invocation_key: row.attempt for row in found}
        for row in page:
            if row["attempt"] > known.get(row["invocation_key"], 0):
                yield row["service"], row["function"], row["invocation_id"]


def _has_changed(row: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    there = known.get(row["execution_id"])
    return there is not None and there.version != row["version"]


_KNOWN: Final = select(executions.c.execution_id, executions.c.version, executions.c.next_event_id).where(
    among(executions.c.execution_id, bindparam("ids"))
)
_LAST_CALLS: Final = (
    select(histories.c.execution_id, func.max(histories.c.last_event_id))
    .where(among(histories.c.execution_id, bindparam("ids")), histories.c.events.like('%,"TaskScheduled",%'))
    .group_by(histories.c.execution_id)
)
_CALLED: Final = select(
    *(invocations.c[name] for name in ("invocation_key", "service", "function", "invocation_id", "attempt"))
).where(invocations.c.execution_id.is_(None), invocations.c.attempt > 0)
_ATTEMPTS: Final = select(invocations.c.invocation_key, invocations.c.attempt).where(
    among(invocations.c.invocation_key, bindparam("keys"))
)


def _pages(connection: Connection, query: Any) -> Iterator[list[dict[str, Any]]]:
    """All rows, some at a time, without holding them all."""
    found = connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)).mappings()
    for page in found.partitions():
        yield [dict(row) for row in page]
