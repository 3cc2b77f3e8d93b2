"""Several nodes on one PostgreSQL: liveness, takeover, and notices between nodes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager

import pytest
from sqlalchemy import Connection, select, text

from flowserver.base.clock import DAY_MS
from flowserver.base.limits import Limits
from flowserver.engine.engine import Engine
from flowserver.engine.executions.watchers import Watch
from flowserver.machine.state import Status
from flowserver.store.cluster.listen_notify import NOTICE_BYTES_MAX
from flowserver.store.cluster.nodes import list_nodes
from flowserver.store.cluster.notices import DROPPED_PER_NOTICE, IDS_PER_NOTICE, Notice, read_notice
from flowserver.store.invocations.submissions import NewInvocation
from flowserver.store.schema.tables import executions, scopes
from tests.engine.called_functions import Functions
from tests.engine.delivering import deliver
from tests.engine.nodes import PATIENCE_SECONDS, FragileDatabase, Node, running_node, take_for_dead
from tests.support.clock import ManualClock
from tests.support.following import follow
from tests.support.postgres import CLEANING

pytestmark = pytest.mark.slow

PAY = "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}"
WAIT = "- {type: wait, name: w, duration: 60}"

OpenDatabase = Callable[[], FragileDatabase]


@pytest.fixture
def open_database(migrated_postgres_url: str) -> Iterator[OpenDatabase]:
    """Opens one PostgreSQL database, once for every node."""
    opened: list[FragileDatabase] = []

    def open_one() -> FragileDatabase:
        opened.append(FragileDatabase(migrated_postgres_url))
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()


@asynccontextmanager
async def two_nodes(open_database: OpenDatabase, clock: ManualClock) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes that know of each other."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(running_node(open_database(), clock, node_id="one"))
        two = await stack.enter_async_context(running_node(open_database(), clock, node_id="two"))
        await knowing(one, 2)
        await knowing(two, 2)
        yield one, two


async def offer(node: Node, functions: Functions, definition: str = PAY) -> None:
    """Register the function and create the flow `f` that calls it."""
    await node.register(functions, "shop/pay")
    await node.create_flow("f", definition)


async def knowing(node: Node, nodes: int) -> None:
    """Return when the node counts this many nodes."""
    news = asyncio.Event()

    def watch() -> None:
        Engine.nodes_changed(node.engine)
        news.set()

    node.engine.nodes_changed = watch  # type: ignore[method-assign]
    async with asyncio.timeout(PATIENCE_SECONDS):
        while node.engine.membership.share.nodes != nodes:
            news.clear()
            await news.wait()


async def test_a_node_whose_clock_is_not_that_of_the_others_deletes_nothing_by_age(open_database: OpenDatabase) -> None:
    right, wrong = ManualClock(), ManualClock()
    wrong.step(32 * DAY_MS)
    async with (
        running_node(open_database(), right, node_id="right"),
        running_node(open_database(), wrong, node_id="wrong") as node,
    ):
        watch = node.engine.clock_watch
        compared = asyncio.Event()
        loop, compare = asyncio.get_running_loop(), watch.compare_others

        def note(differ_ms: int) -> None:
            compare(differ_ms)
            loop.call_soon_threadsafe(compared.set)

        watch.compare_others = note  # type: ignore[method-assign]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (watch.pause or "").startswith("the clocks of this node and of another differ"):
                compared.clear()
                await compared.wait()
        wrong.advance(seconds=86_400)
        assert watch.deletion_now() is None


async def test_a_node_that_stops_does_not_wait_for_its_next_beat(
    open_database: OpenDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.engine.cluster.membership.BEAT_SECONDS", 10 * PATIENCE_SECONDS)
    has_looked = asyncio.Event()
    monkeypatch.setattr(Engine, "nodes_changed", lambda _: has_looked.set())
    async with asyncio.timeout(PATIENCE_SECONDS), running_node(open_database(), clock):
        await has_looked.wait()


def test_a_notice_is_read_as_it_was_written() -> None:
    notice = Notice(changed={"a": False, "b": True}, sweep=True, functions=True)
    notice.note_due("timers", 700)
    notice.note_due("timers", 800)
    notice.note_due("retries", 900)
    [text] = notice.texts("one")
    assert read_notice(text, "two") == Notice({"a": False, "b": True}, {"timers": 700, "retries": 900}, True, True)
    assert read_notice(text, "one") is None
    assert [*Notice(sweep=True).texts("one")] != []


@pytest.mark.parametrize(
    ("notice", "pieces"),
    [
        (
            Notice(
                changed={f"{number:036}": number % 2 == 0 for number in range(2 * IDS_PER_NOTICE + 1)},
                due=dict.fromkeys(("timers", "retries", "deliveries"), 10**14),
            ),
            3,
        ),
        (
            Notice(
                dropped=[(f"{number:036}", 10**9 + number, 2 * 10**9) for number in range(2 * DROPPED_PER_NOTICE + 1)]
            ),
            3 + 1,  # the last piece has the rest of the notice
        ),
        (Notice(dropped_unless_begun=[(f"{number:036}", 1, 2) for number in range(DROPPED_PER_NOTICE + 1)]), 2 + 1),
    ],
    ids=["changed", "dropped", "dropped unless begun"],
)
def test_long_notices_are_sent_in_pieces(notice: Notice, pieces: int) -> None:
    texts = [*notice.texts("0" * 36)]
    assert len(texts) == pieces
    assert max(len(text.encode()) for text in texts) <= NOTICE_BYTES_MAX
    heard = [piece for text in texts if (piece := read_notice(text, "two")) is not None]
    assert {name: over for piece in heard for name, over in piece.changed.items()} == notice.changed
    assert [key for piece in heard for key in piece.dropped] == notice.dropped
    assert [key for piece in heard for key in piece.dropped_unless_begun] == notice.dropped_unless_begun


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"due": "soon"}',
        '{"due": {"timers": "soon"}}',
        '{"changed": 7}',
        '{"ended": [{}]}',
        '{"dropped": [1]}',
    ],
)
def test_notices_of_other_senders_are_ignored(text: str) -> None:
    assert read_notice(text, "one") is None


# Actions


async def test_another_node_makes_the_calls_of_a_silent_node(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock
) -> None:
    """The crashed node announces nothing."""
    async with AsyncExitStack() as stack:
        survivor = await stack.enter_async_context(running_node(open_database(), clock, node_id="survivor"))
        await offer(survivor, functions)
        async with running_node(open_database(), clock, node_id="crashing") as crashing:
            await crashing.start("f", "e")
            first = await functions.next_call("shop/pay")
            crashing.database.crashed = True
        await first.gone.wait()
        again = await functions.next_call("shop/pay")
        assert (again.key, again.attempt) == (first.key, 2)
        again.reply({"paid": "once"})
        assert await survivor.output_of("f", "e") == {"paid": "once"}
        names = [each.node_id for each in survivor.database.run_read(list_nodes)]
        assert names == ["survivor"]


async def test_a_node_declared_dead_writes_nothing_and_returns_under_a_new_id(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock
) -> None:
    async with two_nodes(open_database, clock) as (one, two):
        await offer(one, functions)
        await one.start("f", "e")
        first = await functions.next_call("shop/pay")
        take_for_dead(two.database, "one")
        two.engine.recovery.sweep_soon()
        await first.gone.wait()  # the dead node's call is dropped, whichever node notices first
        again = await functions.next_call("shop/pay")
        assert (again.key, again.attempt) == (first.key, 2)
        again.reply({"paid": "once"})
        assert await one.output_of("f", "e") == {"paid": "once"}
        assert one.engine.lease.node_id != "one"
        await one.start("f", "e2")
        (await functions.next_call("shop/pay")).reply({})
        assert (await two.end_of("f", "e2")).status is Status.SUCCEEDED


async def test_a_reply_counts_only_from_the_node_that_holds_the_lease(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock
) -> None:
    async with two_nodes(open_database, clock) as (one, two):
        await offer(one, functions)
        execution = await one.start("f", "e")
        first = await functions.next_call("shop/pay")
        with two.database.write() as connection:
            connection.execute(scopes.update().values(node_id="two"))  # as another node does that orders the call again
            connection.execute(executions.update().values(version=executions.c.version + 1))
        first.reply({"paid": "by the wrong one"})
        query = select(scopes.c.wait).where(scopes.c.execution_id == execution.execution_id)
        for _ in range(2):
            await two.engine.recovery.sweep()
        again = await functions.next_call("shop/pay")
        assert two.database.run_read(lambda c: c.execute(query).scalar_one()) == "task"
        again.reply({"paid": "by the right one"})
        assert await one.output_of("f", "e") == {"paid": "by the right one"}


async def test_a_waiter_learns_at_once_of_an_end_on_another_node(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.operations.executions.LOOK_AGAIN_SECONDS", 3_600)
    async with two_nodes(open_database, clock) as (one, two):
        await offer(one, functions)
        await one.start("f", "e")
        call = await functions.next_call("shop/pay")
        watching, watch_end = asyncio.Event(), two.engine.watchers.watch_end

        def watch_and_say(execution_id: str, watch: Watch) -> AbstractContextManager[Watch]:
            watching.set()
            return watch_end(execution_id, watch)

        monkeypatch.setattr(two.engine.watchers, "watch_end", watch_and_say)
        waiting = asyncio.create_task(two.end_of("f", "e"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await watching.wait()
        call.reply({})
        assert (await waiting).status is Status.SUCCEEDED


async def test_a_reader_gets_the_events_of_another_node_at_once(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowserver.operations.live_histories.LOOK_AGAIN_SECONDS", 3_600)
    async with two_nodes(open_database, clock) as (one, two), asyncio.timeout(PATIENCE_SECONDS):
        await offer(one, functions)
        await one.start("f", "e")
        call = await functions.next_call("shop/pay")
        begun = len(await two.history("f", "e"))
        seen = []
        async for event in follow(two.operations, "f", "e"):
            seen.append(event)
            if len(seen) == begun:
                call.reply({})
        assert seen == await two.history("f", "e")
        assert seen[-1].type == "ExecutionSucceeded"


async def test_a_registration_takes_effect_on_all_nodes(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_nodes(open_database, clock) as (one, two):
        forgotten = asyncio.Event()
        monkeypatch.setattr(two.engine.endpoints, "forget", forgotten.set)
        await one.register(functions, "shop/pay")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await forgotten.wait()


async def test_a_timer_fires_on_any_node(open_database: OpenDatabase, clock: ManualClock, functions: Functions) -> None:
    async with two_nodes(open_database, clock) as (one, two):
        await one.create_flow("f", WAIT)
        for number in range(8):
            await one.start("f", f"e{number}")
        clock.advance(seconds=60)
        two.engine.timers.notice(0)
        one.engine.timers.notice(0)
        for number in range(8):
            assert (await two.end_of("f", f"e{number}")).status is Status.SUCCEEDED


@pytest.mark.parametrize("source", ["timers", "retries", "deliveries"])
async def test_what_one_node_schedules_another_node_handles_when_due(
    open_database: OpenDatabase,
    functions: Functions,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
) -> None:
    """The node that schedules it does not handle it. The other node looks again only at the instants in its notices."""
    monkeypatch.setattr("flowserver.engine.due_loop.LOOK_AGAIN_SECONDS", 3_600)
    async with two_nodes(open_database, clock) as (one, two):
        await one.register(functions, "shop/pay")
        await one.create_flow("f", "- {type: wait, name: w, duration: 1}")
        await one.engine.due_loops[source].stop()
        heard = asyncio.Event()

        def hear(notice: Notice) -> None:
            Engine.heard(two.engine, notice)
            if source in notice.due:
                heard.set()

        monkeypatch.setattr(two.engine, "heard", hear)
        if source == "timers":
            await one.start("f", "e")
        elif source == "retries":
            await one.engine.invocations.submit(
                NewInvocation(
                    service="shop",
                    qualifier="",
                    function="pay",
                    payload=b"{}",
                    invocation_key="key",
                    request_id="request",
                )
            )
            (await functions.next_call("shop/pay")).fail("Broke")
        else:
            await deliver(one, functions.url("shop/pay"), "1")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await heard.wait()
        clock.advance(seconds=3)  # long enough for timers that belong to the other node's share
        if source == "timers":
            assert (await two.end_of("f", "e")).status is Status.SUCCEEDED
        else:
            (await functions.next_call("shop/pay")).reply({})


@pytest.mark.parametrize("is_heard", [True, False], ids=["notice", "sweep"])
@pytest.mark.parametrize("end", ["stop", "deadline", "timeout", "branch"])
async def test_a_call_is_dropped_when_another_node_ends_its_wait(
    open_database: OpenDatabase,
    functions: Functions,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    end: str,
    is_heard: bool,
) -> None:
    """It releases its slot. If the notice is lost, the node's next two sweeps find the call."""
    monkeypatch.setattr("flowserver.engine.recovery.SWEEP_SECONDS", 3_600)
    steps = {"timeout": f"{PAY[:-1]}, timeoutSeconds: 30}}", "branch": PAY_BESIDE_A_FAILURE}.get(end, PAY)
    async with two_nodes(open_database, clock) as (one, two):
        await one.register(functions, "shop/pay")
        await one.create_flow("f", steps, "timeoutSeconds: 30" if end == "deadline" else "")
        await one.engine.timers.stop()
        if not is_heard:
            monkeypatch.setattr(one.engine, "heard", lambda notice: None)
        await one.start("f", "e")
        call = await functions.next_call("shop/pay")
        assert one.engine.slots.taken == 1
        if end == "stop":
            await two.operations.executions.stop("f", "e")
        else:
            two.advance(clock, seconds=60)  # long enough for calls that belong to the share of an inactive node
        assert (await two.end_of("f", "e")).status in (Status.STOPPED, Status.TIMED_OUT, Status.FAILED)
        for _ in range(0 if is_heard else 2):
            await one.engine.recovery.sweep()
        await call.gone.wait()
        await one.engine.dispatcher.drain(PATIENCE_SECONDS)
        assert one.engine.slots.taken == 0
    assert len(functions.calls) == 1


@pytest.mark.parametrize("has_begun", [True, False])
async def test_a_report_to_another_node_drops_a_call_that_waits(
    open_database: OpenDatabase,
    functions: Functions,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    has_begun: bool,
) -> None:
    """And no call that is under way, whether a sweep sees it before or after the notice."""
    monkeypatch.setattr("flowserver.engine.recovery.SWEEP_SECONDS", 3_600)
    heard: asyncio.Future[Notice] = asyncio.get_running_loop().create_future()
    async with two_nodes(open_database, clock) as (one, two):
        url = functions.url("shop/pay")
        await one.operations.functions.put("shop", "pay", url=url, headers={}, timeout_seconds=None, concurrency_max=2)
        await one.create_flow("f", f"{PAY[:-1]}, pattern: waitForCallback}}")
        rows = [await one.start("f", f"e{number}") for number in range(2)]
        begun = await functions.next_call("shop/pay")
        assert one.engine.dispatcher.waiting == 1

        def hear(notice: Notice) -> None:
            if notice.dropped_unless_begun:
                heard.set_result(notice)
            else:
                Engine.heard(one.engine, notice)

        async def release_none(*_: object) -> int:
            return 0

        monkeypatch.setattr(one.engine, "heard", hear)
        monkeypatch.setattr(one.engine.task_recovery, "release", release_none)
        reported = rows[0 if has_begun else 1].execution_id
        await two.operations.tasks.report_succeeded(two.engine.tokens.make(reported, 1, 2, None), "{}")
        async with asyncio.timeout(PATIENCE_SECONDS):
            notice = await heard
        await one.engine.recovery.sweep()
        Engine.heard(one.engine, notice)
        for _ in range(2):
            await one.engine.recovery.sweep()
        assert one.engine.slots.taken == 1
        assert one.engine.dispatcher.waiting == (1 if has_begun else 0)
        begun.reply({})
        if has_begun:
            (await functions.next_call("shop/pay")).reply({})
        await one.engine.dispatcher.drain(PATIENCE_SECONDS)
        assert not begun.gone.is_set()
    assert len(functions.calls) == (2 if has_begun else 1)


PAY_BESIDE_A_FAILURE = f"""
- type: parallel
  name: both
  branches:
    - steps:
      {PAY}
    - steps:
      - {{type: wait, name: w, duration: 30}}
      - {{type: fail, name: no, error: Broke}}
"""


async def test_calls_of_an_inactive_nodes_share_are_soon_made_by_others(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dead too, but not yet declared dead."""
    monkeypatch.setattr("flowserver.engine.recovery.SWEEP_SECONDS", 3_600)
    async with two_nodes(open_database, clock) as (one, two):
        await offer(one, functions)
        await two.engine.recovery.stop()
        keys = set()
        for number in range(20):
            await one.start("f", f"e{number}")
            keys.add((await functions.next_call("shop/pay")).key)
        with two.database.write() as connection:
            connection.execute(scopes.update().values(node_id="gone"))
            connection.execute(executions.update().values(version=executions.c.version + 1))  # as all changes do
        one.engine.dispatcher.drop_all()
        one.engine.recovery.sweep_soon()
        again = [await functions.next_call("shop/pay") for _ in keys]
        assert {call.key for call in again} == keys
        for call in again:
            call.reply({})


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=1)])
async def test_a_leaving_node_hands_over_calls_that_have_not_begun(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock, limits: Limits
) -> None:
    async with running_node(open_database(), clock, node_id="stays") as stays:
        await offer(stays, functions, PAY + "\n" + PAY.replace("name: pay", "name: again"))
        async with running_node(open_database(), clock, node_id="leaves", limits=limits, drain_seconds=20) as leaves:
            await knowing(leaves, 2)
            await leaves.start("f", "begun")
            begun = await functions.next_call("shop/pay")
            await leaves.start("f", "waiting")
            await leaves.engine.leave()
            handed_over = await functions.next_call("shop/pay")
            assert handed_over.key != begun.key
            begun.reply({})  # its result counts, and the other node runs the next step
            following = await functions.next_call("shop/pay")
            assert following.key not in (begun.key, handed_over.key)
            for call in (handed_over, following):
                call.reply({})
            (await functions.next_call("shop/pay")).reply({})
            for name in ("begun", "waiting"):
                assert (await stays.end_of("f", name)).status is Status.SUCCEEDED
    assert functions.called("shop/pay").count((begun.key, 1)) == 1


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=3)])
async def test_a_joining_node_takes_its_share_of_the_waiting_calls(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock, limits: Limits
) -> None:
    names = [f"e{number}" for number in range(24)]
    async with running_node(open_database(), clock, node_id="one", limits=limits) as one:
        await offer(one, functions)
        for name in names:
            await one.start("f", name)
        under_way = [await functions.next_call("shop/pay") for _ in range(2)]
        async with running_node(open_database(), clock, node_id="two", limits=limits) as two:
            under_way += [await functions.next_call("shop/pay") for _ in range(2)]
            waiting = [one.engine.dispatcher.waiting, two.engine.dispatcher.waiting]
            for call in under_way:
                call.reply({})
            for _ in names[4:]:
                (await functions.next_call("shop/pay")).reply({})
            for name in names:
                assert (await two.end_of("f", name)).status is Status.SUCCEEDED
    assert min(waiting) > 0
    keys = [key for key, _ in functions.called("shop/pay")]
    assert len(keys) == len(set(keys)) == len(names)


async def test_a_leaving_node_hands_over_asynchronous_calls_that_have_not_begun(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock
) -> None:
    asynchronous = PAY[:-1] + ", serviceParams: {InvocationType: Async}}"
    limits = Limits(invocations_in_flight_max=1)
    async with running_node(open_database(), clock, node_id="stays") as stays:
        await offer(stays, functions, asynchronous)
        async with running_node(open_database(), clock, node_id="leaves", limits=limits, drain_seconds=20) as leaves:
            await knowing(leaves, 2)
            for number in range(3):
                await leaves.start("f", f"e{number}")
            begun = await functions.next_call("shop/pay")
            await leaves.engine.leave()
            handed_over = [await functions.next_call("shop/pay") for _ in range(2)]
            for call in (begun, *handed_over):
                call.reply({})
    assert begun.attempt == 1
    assert [call.attempt for call in handed_over] == [1, 1]
    assert len({call.key for call in (begun, *handed_over)}) == len(functions.calls) == 3


@pytest.mark.parametrize("limits", [Limits(invocations_in_flight_max=3)])
async def test_calls_that_a_full_node_distributes_are_not_taken_back(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock, limits: Limits
) -> None:
    names = [f"e{number}" for number in range(24)]
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(running_node(open_database(), clock, node_id="one", limits=limits))
        two = await stack.enter_async_context(running_node(open_database(), clock, node_id="two", limits=limits))
        await knowing(one, 2)
        await knowing(two, 2)
        await offer(one, functions)
        for name in names:
            await one.start("f", name)
        under_way = [await functions.next_call("shop/pay") for _ in range(2)]
        await one.engine.recovery.sweep()
        under_way += [await functions.next_call("shop/pay") for _ in range(2)]
        for _ in range(3):
            await one.engine.recovery.sweep()
        for call in under_way:
            call.reply({})
        for _ in names[4:]:
            (await functions.next_call("shop/pay")).reply({})
        for name in names:
            assert (await two.end_of("f", name)).status is Status.SUCCEEDED
    called = functions.called("shop/pay")
    assert len(called) == len({key for key, _ in called}) == len(names)
    assert {attempt for _, attempt in called} == {1, 2}


async def test_nodes_continue_after_their_connections_are_cut(
    open_database: OpenDatabase, functions: Functions, clock: ManualClock
) -> None:
    async with two_nodes(open_database, clock) as (one, two):
        await offer(one, functions)
        await one.start("f", "e")
        call = await functions.next_call("shop/pay")

        def cut(connection: Connection) -> None:
            others = f"application_name <> '{CLEANING}' AND pid <> pg_backend_pid() AND datname = current_database()"
            connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}"))

        one.database.run_read(cut)
        call.reply({"paid": True})
        assert await two.output_of("f", "e") == {"paid": True}
