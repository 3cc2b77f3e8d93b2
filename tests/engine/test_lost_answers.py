"""A commit whose answer is lost is retried: the retry recognizes the rows of the first try."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, Row, Select, literal, select

from flowserver.base.errors import (
    ExecutionAlreadyCompleted,
    ExecutionNotParked,
    FlowAlreadyExists,
    FlowNotExists,
    FunctionNotExists,
    PreconditionFailed,
    QueueAlreadyExist,
    ResourceThrottled,
    ScheduleNotExists,
    SignatureNonceUsed,
    TaskAlreadyCompleted,
)
from flowserver.base.limits import Limits
from flowserver.base.nonces import Nonce
from flowserver.concurrency.coalescer import Coalescer
from flowserver.engine.commit.batch_items import Envelope, ReceiptKind
from flowserver.machine.events import EventType
from flowserver.machine.messages import RetryLostCall, Stop, Success, TaskReported
from flowserver.machine.state import Status
from flowserver.machine.versions.routing import Route
from flowserver.operations.flows import FlowChange
from flowserver.operations.key_sources import EngineKeys
from flowserver.operations.preconditions import Precondition, etag_of, etag_of_alias
from flowserver.operations.queues import QueueAttributes
from flowserver.operations.redrive_plans import RedriveWish
from flowserver.operations.subscriptions import SubscriptionAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.store.queues.message_writes import Delete, NewQueueMessage, apply_writes
from flowserver.store.schema.queue_tables import queue_messages, queues, subscriptions, topics
from flowserver.store.schema.tables import async_configs, executions, flows, functions, nonces, scopes
from flowserver.store.schema.version_tables import flow_aliases, flow_versions
from tests.engine.called_functions import Functions
from tests.engine.held_threads import Gate
from tests.engine.nodes import PATIENCE_SECONDS, FragileDatabase, Node, definition, running_node
from tests.support.clock import ManualClock

PASS = "- {type: pass, name: p}"
FUNCTION = "'acs:fc:::services/s/functions/f'"
FIRST_PAGE: dict[str, Any] = {"older_than_seconds": 0, "next_token": None, "limit": None}


async def tried_twice(
    node: Node, lost: Select[Any], *writes: Coroutine[Any, Any, Any], through: Coalescer[Any, Any] | None = None
) -> list[Any]:
    """The results of the writes, in this order in one batch whose commit succeeds and whose answer is lost.

    `lost` finds a row once they are written. `through` makes one write of them, if they do not write by themselves.
    """
    answers = await in_one_batch(node, partial(node.database.lose_answer_of, lost), *writes, through=through)
    assert node.database.has_lied
    return answers


async def in_one_batch(
    node: Node,
    prepare: Callable[[], object],
    *writes: Coroutine[Any, Any, Any],
    through: Coalescer[Any, Any] | None = None,
) -> list[Any]:
    """The results of the writes, in this order in one batch; `prepare` is called before they are made."""
    gate, committer = Gate(), node.engine.committer
    gated = asyncio.create_task(committer.write(gate))
    await gate.reached.wait()
    prepare()
    of_server, queued = asyncio.all_tasks(), 0
    owner, method = (committer, "_put") if through is None else (through, "add")
    put = getattr(owner, method)

    def noted(change: Any, *, by_caller: bool) -> asyncio.Future[Any]:
        nonlocal queued
        queued += asyncio.current_task() not in of_server  # which writes of its own accord, too
        future: asyncio.Future[Any] = put(change, by_caller=by_caller)
        return future

    setattr(owner, method, noted)
    tasks: list[asyncio.Task[Any]] = []
    for write in writes:
        tasks.append(asyncio.create_task(write))
        while not tasks[-1].done() and queued < len(tasks):
            await node.engine.reader.ask(lambda _: None)  # a definition is checked first, in a thread
    beside = asyncio.create_task(committer.write(lambda _: None))  # a batch of one would not be retried
    await asyncio.sleep(0)
    gate.open()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.gather(gated, beside)
    return answers


async def test_a_signature_s_nonce_is_not_mistaken_for_a_repeated_one(node: Node) -> None:
    keys = EngineKeys(node.engine)
    answers = await tried_twice(node, select(nonces), *(keys.use_nonce(Nonce("ak", "n", 2**50)) for _ in range(2)))
    assert answers[0] is None
    assert isinstance(answers[1], SignatureNonceUsed)
    with pytest.raises(SignatureNonceUsed):
        await keys.use_nonce(Nonce("ak", "n", 2**50))


async def test_a_flow_does_not_conflict_with_itself(node: Node) -> None:
    create = [node.operations.flows.create("f", definition(PASS)) for _ in range(2)]
    first, second = await tried_twice(node, select(flows), *create)
    assert isinstance(second, FlowAlreadyExists)
    assert await node.operations.flows.describe("f") == first.flow


@pytest.mark.parametrize("limits", [Limits(flows_max=1)])
async def test_the_last_flow_within_the_limit_is_created(node: Node) -> None:
    [first] = await tried_twice(node, select(flows), node.operations.flows.create("f", definition(PASS)))
    assert await node.operations.flows.describe("f") == first.flow


async def test_a_flow_that_replaced_a_deleted_one_is_left_alone(node: Node) -> None:
    operations = node.operations.flows
    old, *_ = await operations.create("f", definition(PASS))
    updated, deleted, new = await tried_twice(
        node,
        select(flows).where(flows.c.flow_id != old.flow_id),
        operations.update("f", FlowChange(description="changed")),
        operations.delete("f"),
        operations.create("f", definition(PASS), description="new"),
    )
    assert (updated.flow.flow_id, updated.flow.description, deleted) == (old.flow_id, "changed", None)
    assert await operations.describe("f") == new.flow
    with pytest.raises(FlowNotExists):
        await operations.delete("g")


async def test_a_change_does_not_fail_its_own_precondition(node: Node) -> None:
    operations = node.operations.flows
    flow, *_ = await operations.create("f", definition(PASS))
    seen = Precondition(frozenset({etag_of(flow)}))
    changes = [operations.update("f", FlowChange(description=text), precondition=seen) for text in ("one", "two")]
    first, second = await tried_twice(node, select(flows).where(flows.c.description != ""), *changes)
    assert first.flow.description == "one"
    assert isinstance(second, PreconditionFailed)
    assert await operations.describe("f") == first.flow


async def test_versions_and_aliases_do_not_refuse_themselves(node: Node) -> None:
    versions, aliases = node.operations.versions, node.operations.aliases
    await node.operations.flows.create("f", definition(PASS))
    [published] = await tried_twice(node, select(flow_versions), versions.publish("f"))
    assert (published[0].version, published[1]) == (1, True)
    [created] = await tried_twice(node, select(flow_aliases), aliases.create("f", "prod", [Route(1, 100)]))
    assert await aliases.describe("f", "prod") == created
    seen = Precondition(frozenset({etag_of_alias(created)}))
    is_changed = select(flow_aliases).where(flow_aliases.c.description == "d")
    [changed] = await tried_twice(node, is_changed, aliases.update("f", "prod", description="d", precondition=seen))
    assert await aliases.describe("f", "prod") == changed
    is_gone = select(literal(1)).where(~select(flow_aliases).exists())
    assert await tried_twice(node, is_gone, aliases.delete("f", "prod")) == [None]
    is_gone = select(literal(1)).where(~select(flow_versions).exists())
    assert await tried_twice(node, is_gone, versions.delete("f", "1")) == [None]


@pytest.mark.parametrize("limits", [Limits(flow_versions_max=1, flow_aliases_max=1)])
async def test_versions_and_aliases_are_limited(node: Node) -> None:
    versions, aliases = node.operations.versions, node.operations.aliases
    await node.operations.flows.create("f", definition(PASS))
    [published] = await tried_twice(node, select(flow_versions), versions.publish("f"))
    assert published[1]
    await aliases.create("f", "a", [Route(1, 100)])
    for refused in (versions.publish("f", description="two"), aliases.create("f", "b", [Route(1, 100)])):
        with pytest.raises(ResourceThrottled):
            await refused


async def rolled_back_first(node: Node, between: Coroutine[Any, Any, Any], operation: Coroutine[Any, Any, Any]) -> Any:
    """The result of the operation if its first try is rolled back, with `between` committed before the second."""
    committer = node.engine.committer
    write = committer.write

    async def twice(change: Callable[[Connection], Any], *, by_caller: bool) -> Any:
        def roll_back(connection: Connection) -> None:
            change(connection)
            raise LookupError

        setattr(committer, "write", write)  # noqa: B010 - it hides the method
        with pytest.raises(LookupError):
            await write(roll_back)
        await between
        return await write(change, by_caller=by_caller)

    setattr(committer, "write", twice)  # noqa: B010
    return await operation


@pytest.mark.parametrize("method", ["delete", "update"])
async def test_a_precondition_is_checked_again_after_a_try_that_was_rolled_back(node: Node, method: str) -> None:
    """Another node changes the flow between the two tries."""
    operations = node.operations.flows
    flow, *_ = await operations.create("f", definition(PASS))
    seen = Precondition(frozenset({etag_of(flow)}))
    other = operations.update("f", FlowChange(description="other"))
    mine = {
        "delete": operations.delete("f", precondition=seen),
        "update": operations.update("f", FlowChange(description="mine"), precondition=seen),
    }
    mine.pop("update" if method == "delete" else "delete").close()
    with pytest.raises(PreconditionFailed):
        await rolled_back_first(node, other, mine[method])
    assert (await operations.describe("f")).description == "other"


async def test_a_redrive_does_not_refuse_itself(node: Node) -> None:
    await node.create_flow("f", "- {type: fail, name: x, error: E}")
    await node.start("f", "e")
    await node.end_of("f", "e")
    await node.operations.flows.update("f", FlowChange(definition=definition("- {type: wait, name: x, duration: 60}")))
    redrive = node.operations.redrives.redrive("f", "e", RedriveWish(definition="current"))
    [row] = await tried_twice(node, select(executions).where(executions.c.redrive_count == 1), redrive)
    assert (row.status, row.redrive_count) == (Status.RUNNING, 1)


async def test_a_schedule_that_never_existed_is_not_mistaken_for_deleted(node: Node) -> None:
    await node.operations.flows.create("f", definition(PASS))
    missing, _ = await tried_twice(
        node,
        select(flows).where(flows.c.name == "g"),
        node.operations.schedules.delete("f", "s"),
        node.operations.flows.create("g", definition(PASS)),
    )
    assert isinstance(missing, ScheduleNotExists)


async def test_an_execution_that_was_never_parked_is_not_mistaken_for_unparked(node: Node) -> None:
    await node.create_flow("f", "- {type: wait, name: x, duration: 60}")
    await node.start("f", "e")
    refused, _ = await tried_twice(
        node,
        select(flows).where(flows.c.name == "g"),
        node.operations.executions.unpark("f", "e"),
        node.operations.flows.create("g", definition(PASS)),
    )
    assert isinstance(refused, ExecutionNotParked)


async def test_a_good_handle_is_deleted_and_an_expired_one_is_not(node: Node, clock: ManualClock) -> None:
    await node.operations.queues.create("q", QueueAttributes(visibility_seconds=30))
    queues = node.engine.queues
    news = [NewQueueMessage(message_id=name, body="b") for name in ("A", "B")]
    await queues.send("q", news)
    expired = (await queues.receive("q", 2))[0]
    clock.advance(seconds=30)
    good = (await queues.receive("q", 1))[0]
    receipts = [(each.message_id, each.receipt or "") for each in (good, expired)]
    last = select(queue_messages).where(queue_messages.c.message_id == "last")  # sent in the same transaction
    deleting = queues.delete("q", receipts)
    sending = queues.send("q", [NewQueueMessage(message_id="last", body="b")])
    assert (await tried_twice(node, last, deleting, sending, through=queues._writes))[0] == [True, False]


async def test_a_deletion_that_was_rolled_back_is_not_mistaken_for_done(node: Node) -> None:
    """The receipt is valid at the first try, which is rolled back, and expires before the second."""
    await node.operations.queues.create("q", QueueAttributes(visibility_seconds=30))
    await node.engine.queues.send("q", [NewQueueMessage(message_id="A", body="b")])
    [message] = await node.engine.queues.receive("q", 1)
    order = Delete("q", [(message.message_id, message.receipt or "")])
    now = node.engine.clock.now_ms()

    def rolled_back(connection: Connection) -> None:
        assert apply_writes(connection, [order], now) == [[True]]
        raise LookupError

    with pytest.raises(LookupError):
        await node.engine.committer.write(rolled_back)
    later = now + 31_000
    assert await node.engine.committer.write(lambda c: apply_writes(c, [order], later)) == [[False]]


async def test_queues_topics_and_subscriptions_are_not_reported_as_existing(node: Node) -> None:
    queue = [node.operations.queues.create("q", QueueAttributes()) for _ in range(2)]
    assert await tried_twice(node, select(queues), *queue) == [True, False]
    other = node.operations.queues.create("r", QueueAttributes())
    differing = node.operations.queues.create("r", QueueAttributes(delay_seconds=1))
    is_there = select(queues).where(queues.c.name == "r")
    created, refused = await tried_twice(node, is_there, other, differing)
    assert created
    assert isinstance(refused, QueueAlreadyExist)
    topic = [node.operations.topics.create("t", TopicAttributes()) for _ in range(2)]
    assert await tried_twice(node, select(topics), *topic) == [True, False]
    attributes = SubscriptionAttributes(endpoint="http://127.0.0.1/")
    subscribing = [node.operations.subscriptions.subscribe("t", "s", attributes) for _ in range(2)]
    assert await tried_twice(node, select(subscriptions), *subscribing) == [True, False]


@pytest.mark.parametrize("limits", [Limits(topic_subscriptions_max=1)])
async def test_the_last_subscription_within_the_limit_is_created(node: Node) -> None:
    await node.operations.topics.create("t", TopicAttributes())
    subscribe = partial(node.operations.subscriptions.subscribe, "t")
    attributes = SubscriptionAttributes(endpoint="http://127.0.0.1/")
    assert await tried_twice(node, select(subscriptions), subscribe("s", attributes)) == [True]
    with pytest.raises(ResourceThrottled):
        await subscribe("other", attributes)


async def test_a_function_and_its_configuration_are_not_reported_missing_once_deleted(node: Node) -> None:
    operations = node.operations.functions
    wanted = {"url": "http://127.0.0.1/f", "headers": {}, "timeout_seconds": None}
    [(_, is_new)] = await tried_twice(node, select(functions), operations.put("s", "f", **wanted))
    assert is_new
    configs = node.operations.async_configs
    await configs.put("s", "", "f", {})
    no_config = select(literal(1)).where(~select(async_configs).exists())
    assert await tried_twice(node, no_config, configs.delete("s", "", "f")) == [None]
    is_gone = select(literal(1)).where(~select(functions).exists())
    first, second = await tried_twice(node, is_gone, operations.delete("s", "f"), operations.delete("s", "f"))
    assert first is None
    assert isinstance(second, FunctionNotExists)


async def test_a_stop_is_not_refused_because_it_has_stopped_the_execution(node: Node) -> None:
    await node.create_flow("f", "- {type: wait, name: x, duration: 60}")
    await node.start("f", "e")
    is_stopped = select(executions).where(executions.c.status == "Stopped")
    stops = [node.operations.executions.stop("f", "e", error=error) for error in ("one", "two")]
    first, second = await tried_twice(node, is_stopped, *stops)
    assert (first.status, first.error) == (Status.STOPPED, "one")
    assert isinstance(second, ExecutionAlreadyCompleted)


async def test_a_report_is_not_refused_because_it_has_settled_the_task(node: Node, functions: Functions) -> None:
    await node.register(functions, "s/f")
    functions.scripts["s/f"] = lambda call: call.reply({})
    await node.create_flow("f", f"- {{type: task, name: t, resourceArn: {FUNCTION}, pattern: waitForCallback}}")
    await node.start("f", "e")
    while not (shown := (await node.operations.tasks.list_waiting(None, **FIRST_PAGE)).items):
        await node.engine.reader.ask(lambda _: None)
    reports = [node.operations.tasks.report_succeeded(shown[0].token, text) for text in ('{"n": 1}', '{"n": 2}')]
    has_ended = select(executions).where(executions.c.status == "Succeeded")
    event_id, second = await tried_twice(node, has_ended, *reports)
    assert [each.type for each in await node.history("f", "e")][event_id - 1] == EventType.TASK_SUCCEEDED
    assert isinstance(second, TaskAlreadyCompleted)
    assert await node.output_of("f", "e") == {"n": 1}


async def test_what_was_ordered_before_the_answer_was_lost_does_not_wait_for_recovery(
    node: Node, functions: Functions
) -> None:
    await node.engine.recovery.stop()
    await node.register(functions, "s/f")
    functions.scripts["s/f"] = lambda call: call.reply({})
    task = f"{{type: task, name: t, resourceArn: {FUNCTION}"
    await node.create_flow("f", f"- {task}, pattern: waitForCallback}}\n- {task.replace('t,', 'next,')}}}")
    [row] = await tried_twice(node, select(executions), node.start("f", "e"))
    assert row.name == "e"
    while not (shown := (await node.operations.tasks.list_waiting(None, **FIRST_PAGE)).items):
        await node.engine.reader.ask(lambda _: None)
    is_entered = select(scopes).where(scopes.c.step_index == 1)
    await tried_twice(node, is_entered, node.operations.tasks.report_succeeded(shown[0].token, "{}"))
    await node.end_of("f", "e")
    assert [call.attempt for call in functions.calls] == [1, 1]


async def test_a_timer_set_before_the_answer_was_lost_is_known(node: Node) -> None:
    await node.create_flow("f", "- {type: wait, name: x, duration: 60}")
    noted: list[int | None] = []
    node.engine.timers.note_due = noted.append  # type: ignore[method-assign,assignment]
    [row] = await tried_twice(node, select(executions), node.start("f", "e"))
    assert noted[0] == row.started_at + 60_000


async def test_no_call_is_made_that_a_commit_ordered_before_it_was_rolled_back(
    node: Node, open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    """Not even if another node records one of its events, in the same millisecond and in another execution."""
    await node.register(functions, "s/f")
    task = f"{{type: task, name: t, resourceArn: {FUNCTION}"
    await node.create_flow("f", f"- {task}, pattern: waitForCallback}}\n- {task.replace('t,', 'next,')}}}")
    ids = [(await node.start("f", name)).execution_id for name in ("stopped", "reported")]
    for _ in ids:
        (await functions.next_call("s/f")).reply({})
    while len(waiting := (await node.operations.tasks.list_waiting(None, **FIRST_PAGE)).items) < len(ids):
        await node.engine.reader.ask(lambda _: None)
    [token] = [each.token for each in waiting if each.task.execution_name == "reported"]
    is_stopped = select(executions).where(executions.c.status == "Stopped")
    async with running_node(open_database(), clock, node_id="other") as other:
        stops = [Envelope(each, Stop("by", "another node")) for each in ids]
        between = committed_between_the_tries(node, is_stopped, other, stops)
        stop = node.operations.executions.stop("f", "stopped")
        await in_one_batch(node, lambda: None, stop, node.operations.tasks.report_succeeded(token, "{}"))
        assert next(between, None) is None
    await node.engine.dispatcher.drain(PATIENCE_SECONDS)
    assert len(functions.calls) == len(ids)


async def test_a_lost_call_that_another_node_has_ordered_again_is_stale(
    node: Node, open_database: Callable[[], FragileDatabase], functions: Functions, clock: ManualClock
) -> None:
    """Though a report beside it in the batch has recorded an event, which is no proof of the order."""
    await node.engine.recovery.stop()
    await node.register(functions, "s/f", "s/g")
    reported = f"{{type: task, name: t, resourceArn: {FUNCTION}, pattern: waitForCallback}}"
    called = f"{{type: task, name: u, resourceArn: {FUNCTION[:-2]}g'}}"
    branches = f"branches: [{{steps: [{reported}]}}, {{steps: [{called}]}}]"
    await node.create_flow("f", f"- {{type: parallel, name: p, {branches}}}")
    execution_id = (await node.start("f", "e")).execution_id
    (await functions.next_call("s/f")).reply({})
    await functions.next_call("s/g")
    waiting = select(scopes.c["scope_id", "entered_event_id", "wait_id", "attempt"])

    async def scope_that_waits(kind: str) -> Row[Any]:
        query = waiting.where(scopes.c.wait == kind)
        while (row := await node.engine.reader.ask(lambda connection: connection.execute(query).first())) is None:
            pass
        return row

    token, call = await scope_that_waits("token"), await scope_that_waits("task")
    report = Envelope(execution_id, TaskReported(token.scope_id, token.entered_event_id, None, Success({})))
    again = Envelope(execution_id, RetryLostCall(call.scope_id, call.wait_id, call.attempt))
    is_reported = select(literal(1)).where(~waiting.where(scopes.c.wait == "token").exists())
    submit = node.engine.committer.submit
    async with running_node(open_database(), clock, node_id="other") as other:
        between = committed_between_the_tries(node, is_reported, other, [again])
        receipts = await in_one_batch(node, lambda: None, submit(report), submit(again))
        assert next(between, None) is None
    assert [receipt.kind for receipt in receipts] == [ReceiptKind.APPLIED, ReceiptKind.STALE]


def committed_between_the_tries(
    node: Node, refused: Select[Any], other: Node, envelopes: Sequence[Envelope]
) -> Iterator[Sequence[Envelope]]:
    """Refuse the first commit of `node` after which `refused` finds a row; before it is tried again, `other` commits
    the envelopes, which the iterator then has no more.
    """
    waiting = iter([envelopes])
    refused_in: list[int] = []

    def refuses(connection: Connection) -> bool:
        if refused_in or connection.execute(refused).first() is None:
            return False
        refused_in.append(threading.get_ident())
        return True

    def meanwhile(use: Callable[[], AbstractContextManager[Connection]]) -> AbstractContextManager[Connection]:
        if refused_in == [threading.get_ident()]:
            for each in waiting:
                other.engine.committer._commit(each)
        return use()

    database = node.database
    database.refuses = refuses
    database.read = partial(meanwhile, database.read)  # type: ignore[method-assign]
    database.write = partial(meanwhile, database.write)  # type: ignore[method-assign]
    return waiting


async def test_a_stop_that_was_rolled_back_is_made_again(node: Node) -> None:
    """Its first try would have been applied, and the commit failed."""
    await node.create_flow("f", "- {type: wait, name: x, duration: 60}")
    await node.start("f", "e")
    refusals = iter([True])
    is_stopped = select(executions).where(executions.c.status == "Stopped")
    node.database.refuses = lambda connection: (
        connection.execute(is_stopped).first() is not None and next(refusals, False)
    )
    stop = node.operations.executions.stop("f", "e", error="mine")
    [stopped] = await in_one_batch(node, lambda: None, stop)
    assert stopped.error == "mine"
    assert next(refusals, None) is None
