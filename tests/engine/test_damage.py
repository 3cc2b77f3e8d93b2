"""Damage in every text column: the server boots, intact executions continue, damaged ones are parked or ended.

SQLite stores any value in any column. PostgreSQL refuses many of them, but a disk can lose the wide values of its rows.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, Table, Text, select

from flowserver.api.rest.models.executions import Execution
from flowserver.api.rpc.reply_bodies import execution_view, flow_view
from flowserver.base.json_values import dump_json
from flowserver.machine.state import Status
from flowserver.store.cluster.nodes import PARKED_HOLDER
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.functions import put_function
from flowserver.store.integrity.damage import find_damage
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.schema.tables import definitions, execution_documents, executions, functions, scopes
from tests.engine.called_functions import Functions
from tests.engine.nodes import PATIENCE_SECONDS, FragileDatabase, Node, running_node
from tests.store.rows import function_row, invocation_row
from tests.support.clock import ManualClock

WAIT = "- {type: wait, name: w, duration: 60}"
CALL = "- {type: task, name: call, resourceArn: 'acs:fc:::services/s/functions/%s'}"

CHECKED = ("executions-status", "scopes-wait", "scopes-node_id", "invocations-status")
"""Columns that PostgreSQL's own constraints protect."""

UNREACHABLE = ("executions-execution_id", "scopes-execution_id")
"""Without these columns no message finds the execution; `flowserver doctor` does."""

KINDS: dict[str, Callable[[int], str]] = {
    "no UTF-8": lambda number: f"CAST(x'ff{number:04x}' AS TEXT)",
    "no JSON": lambda number: f"'{{{number}'",
    "no text": lambda number: f"x'ff{number:04x}'",
}
"""SQL of an invalid value, different for every number, because keys must be unique."""


@dataclass(frozen=True)
class DamagedColumn:
    """One column to damage, in the row of an execution, function or call that is named after it."""

    table: Table
    column: str

    @property
    def name(self) -> str:
        return f"{self.table.name}-{self.column}"

    def inflict(self, connection: Connection, value: str) -> None:
        ids = f"(SELECT {{}} FROM executions WHERE name = '{self.name}')"
        where = {
            invocations: f"invocation_key = '{self.name}'",
            functions: f"function = '{self.name}'",
            definitions: "definition_id IN " + ids.format("definition_id"),
        }.get(self.table, "execution_id IN " + ids.format("execution_id"))
        sql = f"UPDATE {self.table.name} SET {self.column} = {value} WHERE {where}"
        assert connection.exec_driver_sql(sql).rowcount == 1, sql


def damaged_columns(*tables: Table) -> list[DamagedColumn]:
    return [
        DamagedColumn(table, column.name) for table in tables for column in table.c if isinstance(column.type, Text)
    ]


OF_EXECUTIONS = damaged_columns(definitions, execution_documents, scopes, executions)
HOOKS = ("initialize_url", "pre_stop_url")
OF_FUNCTIONS = [column for column in damaged_columns(functions) if column.column not in HOOKS]
OF_CALLS = damaged_columns(invocations)


WAYS = [*(("sqlite_url", kind, ()) for kind in KINDS), ("migrated_postgres_url", "no JSON", CHECKED)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0].split('_')[-2]}, {way[1]}")
async def damaged(request: Any, clock: ManualClock, functions: Functions) -> AsyncIterator[Node]:
    """A node that was started on a database with damage everywhere."""
    url, kind, spared = request.param
    functions.scripts["f"] = lambda call: call.reply({"done": True})
    database = FragileDatabase(request.getfixturevalue(url))
    async with running_node(database, clock) as node:
        await prepare(node, functions.url("f"))
    with database.write() as connection:
        _check_constraints(connection, False)
        for number, column in enumerate([*OF_EXECUTIONS, *OF_FUNCTIONS, *OF_CALLS]):
            if column.name not in spared:
                column.inflict(connection, KINDS[kind](number))
        _check_constraints(connection, True)
    async with running_node(database, clock, node_id="node-2") as node:
        yield node
    database.close()


def _check_constraints(connection: Connection, checked: bool) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA ignore_check_constraints = {not checked}")


async def prepare(node: Node, url: str) -> None:
    """An execution, a function or a call for every column to damage, and intact ones among them."""
    await node.create_flow("good", WAIT)
    for column in OF_EXECUTIONS:
        await node.create_flow(column.name, WAIT)
        await node.start(column.name, column.name)
        await node.start("good", column.name + "-not")
    for column in OF_FUNCTIONS:
        await node.create_flow(column.name, CALL % column.name)
    await node.create_flow("calling", CALL % "good")
    targets = [*(column.name for column in OF_FUNCTIONS), "good"]
    calls = [*(column.name for column in OF_CALLS), "good"]
    with node.database.write() as connection:
        for target in targets:
            put_function(connection, function_row("s", target, url=url))
        now = node.engine.clock.now_ms()
        rows = [invocation_row(key, "gone", service="s", function="good", created_at=now) for key in calls]
        insert_invocations(connection, rows)


async def test_intact_executions_continue_and_damaged_ones_are_parked(damaged: Node, clock: ManualClock) -> None:
    damaged.advance(clock, seconds=60)
    for column in OF_EXECUTIONS:
        assert (await damaged.end_of("good", column.name + "-not")).status is Status.SUCCEEDED
    await damaged.start("calling", "e")
    assert await damaged.output_of("calling", "e") == {"done": True}
    await damaged.engine.recovery.sweep()
    query = select(executions.c.name, executions.c.status, executions.c.parked_error)
    rows = damaged.database.run_read(lambda connection: connection.execute(query).all())
    standing = [row.name for row in rows if row.status == "Running" and row.parked_error is None]
    assert set(standing) <= set(UNREACHABLE)
    assert not [row for row in rows if row.parked_error is None and row.status not in list(Status)]


async def test_calls_of_damaged_rows_are_made_or_parked(damaged: Node, functions: Functions) -> None:
    for column in OF_FUNCTIONS:
        await damaged.start(column.name, "e")
    for column in OF_FUNCTIONS:
        assert (await damaged.end_of(column.name, "e")).status is Status.FAILED
    assert [row.function for row in (await damaged.operations.functions.list(next_token=None, limit=99)).items]
    await damaged.engine.recovery.sweep()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(_left(damaged)) > 1:  # only the row without its key is left
            await damaged.engine.committer.write(lambda _: None)
    assert ("good", 1) in functions.called("f")


def _left(node: Node) -> list[str]:
    """The invocations that have neither ended nor been parked."""
    open_ones = invocations.c.ended_at.is_(None) & (invocations.c.node_id != PARKED_HOLDER)
    query = select(invocations.c.invocation_key).where(open_ones)
    return list(node.database.run_read(lambda connection: connection.execute(query).scalars().all()))


async def test_lists_show_damaged_and_intact_rows(damaged: Node, clock: ManualClock) -> None:
    damaged.advance(clock, seconds=60)
    await damaged.end_of("good", "scopes-local-not")
    good = await damaged.operations.executions.list("good", ExecutionFilter(), next_token=None, limit=100)
    assert {row.name for row in good.items} == {column.name + "-not" for column in OF_EXECUTIONS}
    seen: set[str] = set()
    for flow in (await damaged.operations.flows.list(next_token=None, limit=1000)).items:
        flow_view(flow)
        page = await damaged.operations.executions.list(flow.name, ExecutionFilter(), next_token=None, limit=100)
        for row in page.items:
            execution_view(row)
            dump_json(Execution.of(row).model_dump())
            await damaged.operations.executions.history(flow.name, row.name, next_token=None, limit=100)
            seen.add(row.name)
    unnamed = {"executions-flow_id", "executions-name"}
    assert {column.name for column in OF_EXECUTIONS} - seen <= unnamed
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b"flowserver_database_up 1.0" not in await damaged.operations.monitoring.metrics():
            pass  # on a busy machine a read may take longer than a scrape waits


async def test_a_deep_check_reports_all_the_damage(damaged: Node) -> None:
    found = damaged.database.run_read(lambda connection: {each.place for each in find_damage(connection)})
    for column in [DamagedColumn(execution_documents, "input"), DamagedColumn(scopes, "local")]:
        row = await damaged.operations.executions.describe(column.name, column.name)
        assert any(row.execution_id in place for place in found), column.name
    assert {"function s/functions-headers", "invocation invocations-events"} <= found
    assert any(place.startswith("definition ") for place in found)
