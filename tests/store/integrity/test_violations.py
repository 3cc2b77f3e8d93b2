"""Repairs: a violation is parked, deleted or cleared, unless it has changed meanwhile; other rows stay unchanged."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from flowserver.store.integrity.invariant import Repair
from flowserver.store.integrity.violations import (
    Violation,
    list_parked,
    list_violations,
    repair_execution,
    unpark_execution,
)
from flowserver.store.schema.tables import executions, scopes
from flowserver.store.sql.database import Database
from tests.store.spoiling import VIOLATIONS, another, change, keep_one_of_each, of_scope


@pytest.fixture
def healthy(database: Database) -> Database:
    keep_one_of_each(database)
    return database


def found(database: Database) -> list[Violation]:
    return database.run_read(lambda connection: list_violations(connection, 1_000))


def repair(database: Database, violations: list[Violation]) -> list[bool]:
    done = []
    for _, of_execution in groupby(violations, key=lambda violation: violation.execution_id):
        with database.write() as connection:
            done.append(repair_execution(connection, list(of_execution)))
    return done


def headers(database: Database) -> dict[str, Any]:
    with database.read() as connection:
        return {row.execution_id: row for row in connection.execute(select(executions))}


@pytest.mark.parametrize(("rule", "execution_id", "_scope_id", "spoil"), VIOLATIONS)
def test_every_violation_can_be_repaired(
    healthy: Database, rule: str, execution_id: str, _scope_id: int | None, spoil: Callable[[Connection], Any]
) -> None:
    with healthy.write() as connection:
        spoil(connection)
    violations = found(healthy)
    broken = {violation.execution_id for violation in violations}
    before = headers(healthy)
    assert all(repair(healthy, violations))
    assert found(healthy) == []
    after = headers(healthy)
    assert {each for each in before if before[each] != after[each]} <= broken
    parked = {each.execution_id for each in healthy.run_read(lambda connection: list_parked(connection, 9))}
    assert parked == {each.execution_id for each in violations if each.rule.repair is Repair.PARK} | {"parked"}
    if execution_id in parked & broken and len(violations) == 1:
        assert f"the rule {rule}: " in after[execution_id].parked_error


def test_rows_that_changed_meanwhile_are_left_alone(healthy: Database) -> None:
    with healthy.write() as connection:
        connection.execute(of_scope("joins", 1, open_items=2))
    violations = found(healthy)
    with healthy.write() as connection:  # a turn of a running server
        connection.execute(of_scope("joins", 1, open_items=1))
        connection.execute(change(executions, "joins", version=2))
    assert repair(healthy, violations) == [False]
    assert headers(healthy)["joins"].parked_error is None


def test_rows_of_an_execution_that_still_runs_are_kept(healthy: Database) -> None:
    with healthy.write() as connection:
        another(connection, "ended", "ready")
    violations = found(healthy)
    with healthy.write() as connection:
        connection.execute(change(executions, "ended", status="Running", stopped_at=None))
    assert repair(healthy, violations) == [False]
    with healthy.read() as connection:
        assert connection.execute(select(scopes.c.scope_id).where(scopes.c.execution_id == "ended")).all() == [(1,)]


def test_one_repair_fixes_all_violations_of_an_execution(healthy: Database) -> None:
    with healthy.write() as connection:
        another(connection, "ended", "ready")
        connection.execute(change(executions, "ended", callback_token=None, callback_due=True))
        connection.execute(of_scope("timer", 1, step_input=None))
        connection.execute(change(executions, "timer", callback_due=True))
    violations = found(healthy)
    assert [each.rule.name for each in violations if each.execution_id == "timer"] in (
        ["callback", "wait"],
        ["wait", "callback"],
    )
    assert repair(healthy, violations) == [True, True]
    assert found(healthy) == []


def test_a_parked_execution_can_be_released_once(healthy: Database) -> None:
    with healthy.write() as connection:
        assert unpark_execution(connection, "parked")
        assert not unpark_execution(connection, "parked")
        assert not unpark_execution(connection, "timer")
        connection.execute(change(executions, "ended", parked_error="a bug"))
        assert not unpark_execution(connection, "ended")
        connection.execute(update(executions).values(parked_error=None))
    assert headers(healthy)["parked"].version == 3
