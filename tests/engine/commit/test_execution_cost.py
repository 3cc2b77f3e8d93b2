"""What an execution of five function calls costs the database: work that comes back unnoticed fails these tests.

The counts depend on no clock and no load. Lower here what falls; what rises needs a reason.
"""

from typing import Any

import pytest

from flowserver.store.sql.database import Database
from tests.benchmarks.turns import Writer
from tests.engine.called_functions import Functions
from tests.engine.nodes import Node
from tests.support.clock import ManualClock

CALLS = 5

STATEMENTS = 34
"""In the six transactions in which executions start, get their replies and end: 14 read, 20 write."""

ROWS = 20
"""Header, documents, scope and a row of the history at the start; at each reply but the last header, scope and history;
header, documents, scope and history at the end."""

EXECUTIONS = 8
"""One after another."""

TOGETHER = 32
"""About as many turns share a transaction when 64 executions run at once."""


@pytest.fixture
def writer(database: Database, clock: ManualClock) -> Writer:
    if database.is_sqlite:
        with database.write() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA wal_autocheckpoint = 0")  # so that all pages of the log can be counted
    return Writer(database, clock)


def test_executions_together_share_their_statements(writer: Writer, database: Database) -> None:
    cost = writer.cost_of(writer.starts(TOGETHER))
    assert (cost.commits, cost.turns) == (CALLS + 1, (CALLS + 1) * TOGETHER)
    assert cost.statements == STATEMENTS
    if database.is_sqlite:
        assert cost.rows == ROWS * TOGETHER
        assert cost.log_bytes <= 18_000 * TOGETHER


def test_an_execution_alone(writer: Writer, database: Database) -> None:
    cost = writer.cost_of(writer.starts(1))
    assert (cost.commits, cost.turns, cost.statements) == (CALLS + 1, CALLS + 1, STATEMENTS)
    if database.is_sqlite:
        assert cost.rows == ROWS
        assert cost.log_bytes <= 190_000


async def test_each_reply_of_a_function_needs_one_commit_of_the_server(node: Node, functions: Functions) -> None:
    functions.scripts["bench/echo"] = lambda call: call.reply({"ok": True})
    await node.register(functions, "bench/echo")
    await node.create_flow("calls", "\n".join(map(_step, range(CALLS))))
    await _run(node, "warm-up")
    before = await _commits(node)
    for number in range(EXECUTIONS):
        await _run(node, f"e{number}")
    commits = await _commits(node) - before
    assert commits // EXECUTIONS == CALLS + 1, "besides one or two that the server makes from time to time"


def _step(number: int) -> str:
    return f"- {{type: task, name: call{number}, resourceArn: 'acs:fc:::services/bench/functions/echo'}}"


async def _run(node: Node, name: str) -> None:
    await node.start("calls", name)
    await node.output_of("calls", name)


async def _commits(node: Node) -> int:
    lines = (await node.operations.monitoring.metrics()).decode().splitlines()
    return int(float(next(line for line in lines if line.startswith("flowserver_commits_total ")).split()[1]))
