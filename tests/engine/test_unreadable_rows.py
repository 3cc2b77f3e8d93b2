"""Rows that PostgreSQL itself cannot read: every statement that touches one fails, and only its execution stops."""

import secrets
from collections.abc import AsyncIterator

import pytest

from flowserver.base.errors import InternalServerError
from flowserver.machine.state import Status
from flowserver.store.integrity.damage import find_damage
from flowserver.store.schema.migrating import migrate
from tests.engine.called_functions import Functions
from tests.engine.nodes import FragileDatabase, Node, running_node
from tests.support.clock import ManualClock
from tests.support.metrics import metrics_with_counts
from tests.support.postgres import lose_wide_values

WAIT = "- {type: wait, name: w, duration: 60}"
WIDE = {"text": secrets.token_hex(20_000)}
"""Too large to be kept in the row itself, and not compressible."""


@pytest.fixture
async def lone_node(postgres_url: str, clock: ManualClock) -> AsyncIterator[Node]:
    """A node over a database whose tables may be damaged."""
    database = FragileDatabase(postgres_url)
    migrate(database)
    async with running_node(database, clock) as node:
        yield node
    database.close()


@pytest.mark.parametrize("table", ["execution_documents", "scopes"])
async def test_any_number_of_unreadable_rows_stop_no_other(
    lone_node: Node, postgres_url: str, clock: ManualClock, table: str
) -> None:
    node = lone_node
    await node.create_flow("f", WAIT)
    for name in ("bad", "worse", "worst"):
        await node.start("f", name, WIDE)
    for number in range(5):
        clock.advance(seconds=1)  # so that the bad rows are due before the good ones
        await node.start("f", f"good-{number}")
    lose_wide_values(postgres_url, table)
    node.advance(clock, seconds=60)
    for number in range(5):
        assert (await node.end_of("f", f"good-{number}")).status is Status.SUCCEEDED
    assert await parked(node) == 3
    found = node.database.run_read(lambda connection: [each.place for each in find_damage(connection)])
    assert len([place for place in found if "of execution" in place or place.startswith("execution ")]) >= 3


async def test_an_unreadable_execution_can_be_stopped_at_once(postgres_url: str, clock: ManualClock) -> None:
    database = FragileDatabase(postgres_url)
    migrate(database)
    async with running_node(database, clock) as node:
        await node.create_flow("f", WAIT)
        await node.start("f", "bad", WIDE)
    lose_wide_values(postgres_url, "scopes")  # while no transaction is open that would keep the lost rows for a while
    async with running_node(database, clock, node_id="node-2") as node:
        stopped = await node.operations.executions.stop("f", "bad", error="Enough")
    assert (stopped.status, stopped.error) == (Status.STOPPED, "Enough")
    database.close()


async def test_a_lost_definition_or_registration_fails_its_users(
    lone_node: Node, postgres_url: str, functions: Functions
) -> None:
    node = lone_node
    filler = f"# {secrets.token_hex(20_000)}"
    await node.create_flow("wide", WAIT, filler)
    await node.create_flow("calling", "- {type: task, name: t, resourceArn: 'acs:fc:::services/s/functions/f'}")
    await node.create_flow("parent", "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/wide', pattern: sync}")
    await node.operations.functions.put(
        "s",
        "f",
        url=functions.url("f"),
        headers={f"x-{n}": secrets.token_hex(1_000) for n in range(9)},
        timeout_seconds=9,
    )
    lose_wide_values(postgres_url, "definitions")
    lose_wide_values(postgres_url, "functions")
    node.engine.endpoints.forget()
    with pytest.raises(InternalServerError):
        await node.start("wide", "e")
    await node.start("calling", "e")
    await node.start("parent", "e")
    assert await node.error_of("calling", "e") == "FnF.RuntimeError"
    assert (await node.end_of("parent", "e")).status is Status.FAILED


async def parked(node: Node) -> int:
    text = await metrics_with_counts(node.operations)
    [line] = [line for line in text.splitlines() if line.startswith("flowserver_parked_executions ")]
    return int(float(line.split()[1]))
