"""Violations of the invariant as people read them, and their repairs.

A repair is one transaction per execution, beside a running server: the header is locked, or changed only if its
`version` is still the one the violation was found under, so it never undoes a turn that was committed meanwhile.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Update, delete, false, select, update

from flowserver.machine.state import Status
from flowserver.store.integrity.invariant import RULES, Repair, Rule, violations
from flowserver.store.schema.tables import PARKED, RUNNING, executions, finished_items, scopes
from flowserver.store.sql.unreadable import legible

RULE_BY_NAME: Final = {rule.name: rule for rule in RULES}


@dataclass(frozen=True, slots=True)
class Violation:
    """One row of the view, with the header it was found under; there is none for rows of an unknown execution."""

    rule: Rule
    execution_id: str
    scope_id: int | None
    detail: str
    version: int | None
    flow_name: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Parked:
    """A running execution that is set aside."""

    execution_id: str
    flow_name: str
    name: str
    error: str


def list_violations(connection: Connection, limit: int) -> list[Violation]:
    """Violations and their headers from one snapshot, by execution; at most `limit`."""
    header = executions.c
    query = (
        select(violations, header.version, header.flow_name, header.name)
        .join(executions, header.execution_id == violations.c.execution_id, isouter=True)
        .order_by(violations.c.execution_id, violations.c.scope_id)
        .limit(limit)
    )
    return [
        Violation(
            RULE_BY_NAME[row.rule],
            legible(row.execution_id),
            row.scope_id,
            legible(row.detail),
            row.version,
            legible(row.flow_name),
            legible(row.name),
        )
        for row in connection.execute(query)
    ]


def list_parked(connection: Connection, limit: int) -> list[Parked]:
    """Running executions that are set aside, at most `limit`."""
    header = executions.c
    query = select(header.execution_id, header.flow_name, header.name, header.parked_error).where(PARKED, RUNNING)
    return [Parked(*map(legible, row)) for row in connection.execute(query.order_by(header.execution_id).limit(limit))]


def repair_execution(connection: Connection, listed: Iterable[Violation]) -> bool:
    """Repair the violations of one execution; False if it has changed since they were found, and nothing was done."""
    found = {violation.rule.repair: violation for violation in listed}
    if Repair.DELETE in found and not _delete_scopes(connection, found[Repair.DELETE].execution_id):
        return False
    changes: dict[str, Any] = {}
    if Repair.CLEAR_CALLBACK in found:
        changes["callback_due"] = false()
    if Repair.PARK in found:
        reason = found[Repair.PARK]
        changes["parked_error"] = f"the stored state breaks the rule {reason.rule.name}: {reason.detail}"
    if not changes:
        return True
    changes["version"] = executions.c.version + 1
    return connection.execute(_unchanged(next(iter(found.values()))).values(changes)).rowcount == 1


def _unchanged(violation: Violation) -> Update:
    header = executions.c
    return update(executions).where(header.execution_id == violation.execution_id, header.version == violation.version)


def _delete_scopes(connection: Connection, execution_id: str) -> bool:
    """Only if no execution of that id runs; locked, so that none of its turns is under way."""
    header = select(executions.c.status).where(executions.c.execution_id == execution_id).with_for_update()
    if connection.execute(header).scalar_one_or_none() == Status.RUNNING:
        return False
    own = [delete(table).where(table.c.execution_id == execution_id) for table in (scopes, finished_items)]
    return sum(connection.execute(each).rowcount for each in own) > 0


def unpark_execution(connection: Connection, execution_id: str) -> bool:
    """Let a running execution that is set aside take messages again; False if it is not, or has ended."""
    header = executions.c
    parked = update(executions).where(header.execution_id == execution_id, RUNNING, PARKED)
    return connection.execute(parked.values(parked_error=None, version=header.version + 1)).rowcount == 1
