"""The view `violations`: empty for all states that the machine makes, and a row for every violation of every rule."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select, text, update

from flowserver.store.integrity.invariant import RULES, violations
from flowserver.store.schema.tables import definitions, executions
from flowserver.store.sql.database import Database
from tests.store.spoiling import VIOLATIONS, keep_one_of_each, of_scope


@pytest.fixture
def healthy(database: Database) -> Database:
    keep_one_of_each(database)
    return database


def broken_rules(connection: Connection) -> set[str]:
    return set(connection.execute(select(violations.c.rule)).scalars())


def test_a_valid_state_violates_no_rule(healthy: Database) -> None:
    with healthy.read() as connection:
        assert connection.execute(select(violations)).all() == []


@pytest.mark.parametrize(("rule", "execution_id", "scope_id", "spoil"), VIOLATIONS)
def test_every_violation_is_found(
    healthy: Database, rule: str, execution_id: str, scope_id: int | None, spoil: Callable[[Connection], Any]
) -> None:
    with healthy.write() as connection:
        spoil(connection)
    with healthy.read() as connection:
        rows = connection.execute(select(violations)).all()
    assert (execution_id, scope_id, rule) in {(row.execution_id, row.scope_id, row.rule) for row in rows}
    assert all(row.detail for row in rows)


def test_every_rule_is_tested() -> None:
    assert {rule for rule, *_ in VIOLATIONS} == {rule.name for rule in RULES}


def test_a_parked_execution_violates_no_rule(healthy: Database) -> None:
    with healthy.write() as connection:
        connection.execute(of_scope("joins", 1, open_items=2))
        connection.execute(delete(definitions))
        assert broken_rules(connection) == {"join", "flow-missing"}
        connection.execute(update(executions).values(parked_error="a bug"))
        assert broken_rules(connection) == set()


def test_ended_executions_cost_nothing(sqlite_database: Database) -> None:
    """SQLite's plan uses partial indexes of running executions; it never scans all headers."""
    with sqlite_database.read() as connection:
        plan = [row.detail for row in connection.execute(text("EXPLAIN QUERY PLAN SELECT * FROM violations"))]
    assert [line for line in plan if line in ("SCAN e", "SCAN d", "SCAN f", "SCAN c")] == []
    assert any("ix_executions_callback_due" in line for line in plan)
