"""Retention deletes whole executions after their time, and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from secrets import token_urlsafe

import pytest
from sqlalchemy import Connection, func, select, update
from sqlalchemy.exc import OperationalError

from flowserver.base.clock import DAY_MS
from flowserver.engine import deletion_pace
from flowserver.engine import retention as module
from flowserver.engine.retention import ExecutionRetention
from flowserver.machine.cluster.shares import Share
from flowserver.machine.retention_rules import FOR_EVER, KEPT_MS_MIN, Rules
from flowserver.machine.state import Status
from flowserver.operations.flows import FlowChange, Retention
from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from flowserver.store.executions.listing_of_flow import ExecutionFilter
from flowserver.store.executions.retention import HIDDEN
from flowserver.store.executions.saving import Changes, park_execution, save_changes
from flowserver.store.integrity.damage import find_damage
from flowserver.store.integrity.file_space import executions_bytes, used_bytes
from flowserver.store.integrity.violations import list_violations
from flowserver.store.schema.tables import definitions, execution_documents, executions, flows, histories
from tests.engine.nodes import FragileDatabase, Node, definition, running_node
from tests.store.rows import end, event, new_execution
from tests.support.clock import ManualClock
from tests.support.metrics import metrics_with_counts

PASS = "- {type: pass, name: p}"
WAIT = "- {type: wait, name: w, duration: 60}"
MONTH = Rules(days=30, bytes_max=0)


class Keeper:
    """A retention over a node, and its counts."""

    def __init__(self, node: Node, rules: Rules) -> None:
        self.deleted: list[int] = []
        self.rests: list[float] = []
        self.retention = ExecutionRetention(node.engine.context, rules, self.deleted.append, self._rest)

    async def _rest(self, seconds: float) -> None:
        self.rests.append(seconds)

    async def run_once(self) -> int:
        return await self.retention.run_once()


async def keep(node: Node, clock: ManualClock, flow: str, name: str, days: float, rows: int = 3) -> None:
    """An execution of the flow that ended some days ago, with a history of `events` events."""
    described = await node.operations.flows.describe(flow)
    stopped_at = clock.now_ms() - round(days * DAY_MS)
    stored = new_execution(f"id-{name}", described.flow_id, flow_name=flow, name=name, started_at=stopped_at - 5)
    stored.definition_id = described.definition_id
    stored.execution.next_event_id = rows + 1
    end(stored, Status.SUCCEEDED, output={"a": 1})
    with node.database.write() as connection:
        save_changes(connection, [Changes(stored, [event(number) for number in range(1, rows + 1)])], "node-1")


def names(node: Node) -> set[str]:
    with node.database.read() as connection:
        return set(connection.execute(select(executions.c.name)).scalars())


def count(node: Node, table: object) -> int:
    with node.database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())  # type: ignore[arg-type]


def is_sound(node: Node) -> bool:
    with node.database.read() as connection:
        return not list_violations(connection, 9) and not list(find_damage(connection))


async def test_an_execution_that_ended_long_ago_is_deleted_whole(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", PASS)
    for number in range(120):
        await keep(node, clock, "f", f"old-{number}", days=30.1 + number)
    await keep(node, clock, "f", "new", days=29.9)
    kept = Keeper(node, MONTH)
    assert await kept.run_once() == 120
    assert sum(kept.deleted) == 120
    assert max(kept.deleted) <= module.EXECUTIONS_AT_ONCE
    assert names(node) == {"new"}
    assert (count(node, histories), count(node, execution_documents)) == (3, 1)
    assert is_sound(node)
    assert await kept.run_once() == 0
    assert (await node.start("f", "old-1")).name == "old-1"  # the name is free again


async def test_running_executions_and_those_with_a_due_callback_stay(node: Node, clock: ManualClock) -> None:
    await node.engine.recovery.stop()  # its end is due to be reported
    await node.create_flow("f", WAIT)
    await node.start("f", "running")
    parked = await node.start("f", "parked")
    await keep(node, clock, "f", "untold", days=400)
    with node.database.write() as connection:
        park_execution(connection, parked.execution_id, "a bug")
        connection.execute(update(executions).where(executions.c.status == "Running").values(started_at=5))
        told = executions.c.name == "untold"
        connection.execute(update(executions).where(told).values(callback_due=True, callback_token="token"))
    kept = Keeper(node, Rules(days=1, bytes_max=1))
    assert await kept.run_once() == 0
    assert names(node) == {"running", "parked", "untold"}
    with node.database.write() as connection:
        connection.execute(update(executions).where(told).values(callback_due=False))
    assert await kept.run_once() == 1


async def test_a_flow_may_have_its_own_retention(node: Node, clock: ManualClock) -> None:
    for name, days in {"short": 7, "long": 365, "ever": 0, "usual": None}.items():
        await node.create_flow(name, PASS)
        await node.operations.flows.update(name, FlowChange(kept=Retention(days)))
        await keep(node, clock, name, f"{name}-8", days=8)
        await keep(node, clock, name, f"{name}-31", days=31)
    assert await Keeper(node, MONTH).run_once() == 3
    assert names(node) == {"long-8", "long-31", "ever-8", "ever-31", "usual-8"}
    assert await Keeper(node, FOR_EVER).run_once() == 0


async def test_with_too_many_executions_the_oldest_ends_are_deleted_first(node: Node, clock: ManualClock) -> None:
    for flow, days in (("f", None), ("g", None), ("ever", 0)):
        await node.create_flow(flow, PASS)
        await node.operations.flows.update(flow, FlowChange(kept=Retention(days)))
    empty = node.database.run_read(used_bytes)
    for number in range(80):
        await keep(node, clock, "fg"[number % 2], f"e{number:03}", days=number / 10, rows=30)
    await keep(node, clock, "ever", "ever", days=300)
    bytes_max = (empty + node.database.run_read(used_bytes)) // 2
    kept = Keeper(node, Rules(days=0, bytes_max=bytes_max))
    gone = await kept.run_once()
    assert 20 < gone < 60
    assert names(node) == {f"e{number:03}" for number in range(80 - gone)} | {"ever"}
    assert node.database.run_read(used_bytes) <= bytes_max * 1.03  # an estimate on PostgreSQL
    assert is_sound(node)


async def test_a_flooded_queue_costs_no_history(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", PASS)
    await node.operations.queues.create("q", QueueAttributes())
    for number in range(20):
        await keep(node, clock, "f", f"e{number:02}", days=1, rows=30)
    bytes_max = node.database.run_read(executions_bytes) + 500_000  # what does not count is an estimate
    for _ in range(100):
        await node.operations.queues.send("q", [OutgoingMessage(body=token_urlsafe(48_000)[:60_000])])
    assert node.database.run_read(used_bytes) > 2 * bytes_max
    assert await Keeper(node, Rules(days=0, bytes_max=bytes_max)).run_once() == 0
    assert len(names(node)) == 20


async def test_young_executions_always_stay(node: Node, clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    """A repeated start must still find its execution."""
    await node.create_flow("f", PASS)
    await keep(node, clock, "f", "young", days=(KEPT_MS_MIN - 1000) / DAY_MS)
    assert await Keeper(node, Rules(days=0, bytes_max=1)).run_once() == 0
    assert "no more may be deleted now" in caplog.text
    clock.advance(seconds=2)
    assert await Keeper(node, Rules(days=0, bytes_max=1)).run_once() == 1


async def test_a_long_history_is_deleted_in_portions(
    node: Node, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion_pace, "ROWS_MIN", 10)
    monkeypatch.setattr(deletion_pace, "ROWS_MAX", 10)
    await node.create_flow("f", PASS)
    await keep(node, clock, "f", "long", days=31, rows=95)
    await keep(node, clock, "f", "short", days=31, rows=4)
    seen: list[tuple[set[str], int]] = []

    def look(connection: Connection) -> bool:
        shown = connection.execute(select(executions.c.name).where(executions.c.flow_id != HIDDEN)).scalars()
        seen.append((set(shown), connection.execute(select(func.count()).select_from(histories)).scalar_one()))
        return False

    node.database.refuses = look
    assert await Keeper(node, MONTH).run_once() == 2
    assert count(node, histories) == 0
    for shown, rows in seen:
        assert rows >= 95 * ("long" in shown) + 4 * ("short" in shown)
    assert max(a[1] - b[1] for a, b in pairwise(seen)) <= 10


@pytest.mark.parametrize("commits", range(1, 8))
async def test_a_crash_leaves_whole_executions_or_none(
    open_database: Callable[[], FragileDatabase],
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    commits: int,
) -> None:
    monkeypatch.setattr(deletion_pace, "ROWS_MIN", 10)
    monkeypatch.setattr(deletion_pace, "ROWS_MAX", 10)
    database = open_database()
    async with running_node(database, clock) as node:
        await node.create_flow("f", PASS)
        for number, rows in enumerate((4, 25, 4)):
            await keep(node, clock, "f", f"e{number}", days=40 - number, rows=rows)
        left = [commits]

        def crash(_: Connection) -> bool:
            left[0] -= 1
            return left[0] < 0

        database.refuses = crash
        with pytest.raises(OperationalError):
            await Keeper(node, MONTH).run_once()
        database.crashed = True
    survivor = open_database()
    async with running_node(survivor, clock, node_id="node-2") as node:
        assert is_sound(node)
        page = await node.operations.executions.list("f", ExecutionFilter(), next_token=None, limit=None)
        for row in page.items:
            assert len(await node.history("f", row.name)) in (4, 25)
        await Keeper(node, MONTH).run_once()
        assert (count(node, executions), count(node, histories), count(node, execution_documents)) == (0, 0, 0)


async def test_several_nodes_divide_the_work(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", PASS)
    for number in range(40):
        await keep(node, clock, "f", f"e{number}", days=31)
    one, other = Keeper(node, MONTH), Keeper(node, MONTH)
    share = Share(0, 2)
    node.engine.membership.share = share
    with node.database.read() as connection:
        flow_id = (await node.operations.flows.describe("f")).flow_id
        found = module.ended_before(connection, flow_id, clock.now_ms(), module.FOUND_AT_ONCE)
    mine = sum(share.owns(each.execution_id) for each in found)
    assert 0 < mine < 40
    portions = list(one.retention._in_portions([each for each in found if share.owns(each.execution_id)]))
    assert sum([await one.retention._delete(portion, clock.now_ms()) for portion in portions]) == mine
    node.engine.membership.share = Share(1, 2)
    assert await other.run_once() == 40 - mine
    assert names(node) == set()


@pytest.mark.parametrize("events", [3, 2_000])
async def test_an_execution_that_ends_again_after_it_was_found_is_kept(
    node: Node, clock: ManualClock, events: int
) -> None:
    """It was found, and before its portion's turn it was redriven and ended."""
    await node.create_flow("f", PASS)
    await keep(node, clock, "f", "e", days=31, rows=events)
    keeper, until = Keeper(node, MONTH), clock.now_ms() - 30 * DAY_MS
    with node.database.read() as connection:
        flow_id = (await node.operations.flows.describe("f")).flow_id
        found = module.ended_before(connection, flow_id, until, module.FOUND_AT_ONCE)
    with node.database.write() as connection:
        connection.execute(update(executions).values(stopped_at=clock.now_ms()))
    assert await keeper.retention._delete(found, until) == 0
    assert names(node) == {"e"}
    with node.database.read() as connection:
        assert not list(find_damage(connection))


async def test_definitions_without_references_are_deleted(node: Node, clock: ManualClock) -> None:
    await node.create_flow("gone", PASS)
    await node.create_flow("there", PASS)
    await keep(node, clock, "gone", "last", days=0.5)
    await keep(node, clock, "there", "first", days=0.5)
    for step in "qr":
        changed = FlowChange(definition=definition(f"- {{type: pass, name: {step}}}"))
        await node.operations.flows.update("there", changed)
    await node.operations.flows.delete("gone")
    kept = Keeper(node, FOR_EVER)
    assert await kept.run_once() == 1  # executions of a deleted flow cannot be read
    assert (names(node), count(node, flows)) == ({"first"}, 2)
    clock.advance(seconds=3_601)
    await kept.run_once()
    assert (count(node, flows), count(node, definitions)) == (1, 2)
    row = await node.operations.executions.describe("there", "first")
    assert row.definition == definition(PASS)
    with node.database.write() as connection:
        connection.execute(executions.delete())
    clock.advance(seconds=3_601)
    await kept.run_once()
    assert count(node, definitions) == 1


async def test_what_a_start_under_way_may_have_read_is_kept_for_an_hour(node: Node, clock: ManualClock) -> None:
    """A replaced definition, and a deleted flow: a start that has read them may commit later."""
    kept = Keeper(node, FOR_EVER)
    for name in ("replaced", "gone"):
        await node.create_flow(name, PASS)
    await node.operations.flows.update("replaced", FlowChange(definition=definition(WAIT)))
    await node.operations.flows.delete("gone")
    clock.advance(seconds=3_599)
    await kept.run_once()
    assert (count(node, flows), count(node, definitions)) == (2, 3)
    for _ in range(2):  # the definition of a flow that is forgotten in this round goes with the next
        clock.advance(seconds=3_601)
        await kept.run_once()
    assert (count(node, flows), count(node, definitions)) == (1, 1)


async def test_the_definition_of_a_version_is_kept(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", PASS)
    await node.operations.versions.publish("f")
    await node.operations.flows.update("f", FlowChange(definition=definition(WAIT)))
    kept = Keeper(node, FOR_EVER)
    clock.advance(seconds=3_601)
    await kept.run_once()
    assert (await node.operations.versions.describe("f", "1")).definition == definition(PASS)
    await node.operations.versions.delete("f", "1")
    assert count(node, definitions) == 2
    clock.advance(seconds=3_601)
    await kept.run_once()
    assert count(node, definitions) == 1


async def test_a_file_shrinks(sqlite_url: str, clock: ManualClock) -> None:
    database = FragileDatabase(sqlite_url)
    async with running_node(database, clock) as node:
        await node.create_flow("f", PASS)
        database.checkpoint()
        assert database.sqlite_file is not None
        empty = database.sqlite_file.stat().st_size
        for number in range(300):
            await keep(node, clock, "f", f"e{number}", days=31 if number else 1, rows=50)
        database.checkpoint()
        before = database.sqlite_file.stat().st_size
        assert await Keeper(node, MONTH).run_once() == 299
        after = database.sqlite_file.stat().st_size
        assert before - empty > 4 * (after - empty)
    database.close()


async def test_other_work_comes_first(node: Node, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion pauses for as long as it has taken whenever other work waits for the writer."""
    await node.create_flow("f", PASS)
    for number in range(120):
        await keep(node, clock, "f", f"e{number}", days=31)
    monkeypatch.setattr(type(node.engine.committer), "pending", 3)
    kept = Keeper(node, MONTH)
    await kept.run_once()
    assert len(kept.rests) >= len(kept.deleted) > 2
    monkeypatch.undo()
    await keep(node, clock, "f", "e", days=31)
    kept = Keeper(node, MONTH)
    await kept.run_once()
    assert (kept.deleted, kept.rests) == ([1], [])


async def test_deletions_are_counted(node: Node, clock: ManualClock) -> None:
    await node.create_flow("f", PASS)
    await keep(node, clock, "f", "e", days=31)
    engine = node.engine
    engine.retention._rules = replace(FOR_EVER, days=30)
    await engine.retention.run_once()
    text = await metrics_with_counts(node.operations)
    assert "flowserver_deleted_executions_total 1.0" in text
    assert "flowserver_used_bytes " in text
