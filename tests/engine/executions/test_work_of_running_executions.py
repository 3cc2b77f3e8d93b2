"""What a running execution orders is never refused because callers ask for too much: not one of its steps fails."""

import asyncio

import pytest
from sqlalchemy import select

from flowserver.base.errors import FlowServerError, ResourceThrottled
from flowserver.base.limits import Limits
from flowserver.engine.deliveries.publishing import NewTopicMessage
from flowserver.machine.events import EventType
from flowserver.operations.queues import QueueAttributes
from flowserver.operations.subscriptions import SubscriptionAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.store.invocations.submissions import NewInvocation
from flowserver.store.schema.tables import executions
from tests.engine.called_functions import PATIENCE_SECONDS, Call, Functions
from tests.engine.nodes import Node

BEGIN = "- {type: task, name: begin, resourceArn: 'acs:fc:::services/shop/functions/begin', outputMappings: []}\n"
ASYNC = "resourceArn: acs:fc:::services/shop/functions/ship, serviceParams: {InvocationType: Async}"
STEPS = {
    "a call": "resourceArn: acs:fc:::services/shop/functions/ship",
    "an action": "action: ocr:Read",
    "a callback": "resourceArn: acs:fc:::services/shop/functions/ship, pattern: sync",
    "an invocation": ASYNC,
    "an invocation that it waits for": f"{ASYNC}, pattern: sync",
    "an invocation with a destination": ASYNC.replace("ship", "told"),
    "a sub-flow": "resourceArn: acs:fnf:::flow/child",
    "a sub-flow that it waits for": "resourceArn: acs:fnf:::flow/child, pattern: sync",
    "a start": "action: 'fnf:StartExecution', serviceParams: {FlowName: child, Input: $}",
    "a message to a queue": "resourceArn: 'acs:mns:::/queues/jobs/messages', serviceParams: {MessageBody: $}",
    "a message to a topic": "resourceArn: 'acs:mns:::/topics/news/messages', serviceParams: {MessageBody: $}",
}
NEVER_ENDS = "- {type: wait, name: w, duration: 100000}"


@pytest.fixture
def limits() -> Limits:
    """Limits of this test's own, which `flood` changes."""
    return Limits()


@pytest.fixture(autouse=True)
async def surroundings(node: Node, functions: Functions) -> None:
    await node.register(functions, "shop/begin", "shop/ship", "shop/told", "ocr/Read")
    await node.operations.queues.create("jobs", QueueAttributes())
    await node.operations.topics.create("news", TopicAttributes())
    wanted = SubscriptionAttributes(endpoint="acs:mns:::queues/jobs")
    await node.operations.subscriptions.subscribe("news", "all", wanted)
    destination = {"destinationConfig": {"onSuccess": {"destination": "acs:mns:::/queues/jobs/messages"}}}
    await node.operations.async_configs.put("shop", "", "told", destination)
    await node.create_flow("child", "- {type: pass, name: p}")
    await node.create_flow("busy", NEVER_ENDS)
    await node.start("busy", "caller")

    def answer(call: Call) -> None:
        call.reply({"done": True})

    for title in ("shop/ship", "shop/told", "ocr/Read"):
        functions.scripts[title] = answer


async def flood(node: Node, limits: Limits) -> None:
    """Callers have as much waiting and running as they may, so that each further one is refused."""
    for name in ("pending_messages_max", "function_waiting_max"):
        object.__setattr__(limits, name, 0)
    object.__setattr__(limits, "running_executions_max", 2)
    engine = node.engine
    for coalescer in (engine.invocations._submissions, engine.queues._writes, engine.topics._publications):
        coalescer._pending_max = 0
    message = NewTopicMessage(message_id="m", body="b")
    invocation = NewInvocation(
        service="shop",
        qualifier="",
        function="ship",
        payload=b"{}",
        invocation_key="caller",
        request_id="r",
    )
    for asked in (
        node.start("busy", "another"),
        engine.committer.write(lambda _: None, by_caller=True),
        engine.reader.ask(lambda _: None, by_caller=True),
        engine.queues.send("jobs", [], by_caller=True),
        engine.topics.publish("news", message, by_caller=True),
        engine.invocations.submit(invocation),
    ):
        with pytest.raises(ResourceThrottled):
            await asked


async def end(node: Node, limits: Limits, name: str) -> tuple[str, str | None, str | None]:
    """Status, error and cause of the execution of flow `f` once it has ended during the flood, which then ends, too."""
    status = select(executions.c.status).where(executions.c.name == name)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            await node.engine.committer.write(lambda _: None)  # changes under way come first
            with node.database.read() as connection:
                if connection.execute(status).scalar_one() != "Running":
                    break
    object.__setattr__(limits, "pending_messages_max", 100)
    row = await node.end_of("f", name)
    return row.status, row.error, row.cause


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
async def test_no_step_is_refused_for_the_load_of_callers(
    node: Node, functions: Functions, limits: Limits, step: str
) -> None:
    await node.create_flow("f", f"{BEGIN}- {{type: task, name: ordered, {step}}}")
    await node.start("f", "e")
    begun = await functions.next_call("shop/begin")
    await flood(node, limits)
    begun.reply({})
    assert await end(node, limits, "e") == ("Succeeded", None, None)


async def test_the_end_of_an_invocation_reaches_its_destination(
    node: Node, functions: Functions, limits: Limits
) -> None:
    await node.create_flow("f", f"{BEGIN}- {{type: task, name: ordered, {STEPS['an invocation with a destination']}}}")
    await node.start("f", "e")
    begun = await functions.next_call("shop/begin")
    await flood(node, limits)
    begun.reply({})
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await node.engine.queues.receive("jobs", 1, 1):
            pass


async def test_sub_flows_have_a_bound_of_their_own(node: Node, functions: Functions, limits: Limits) -> None:
    """Callers can fill `running_executions_max`; steps may start as many again, and no more."""
    start = "- {type: task, name: ordered, resourceArn: 'acs:fnf:::flow/busy'}\n"
    await node.create_flow("f", f"{BEGIN}{start}{NEVER_ENDS}")
    begun = {}
    for name in "abc":
        await node.start("f", name)
        begun[name] = await functions.next_call("shop/begin")
    object.__setattr__(limits, "running_executions_max", 3)
    with pytest.raises(ResourceThrottled):
        await node.start("busy", "another")
    for name in "ab":
        begun[name].reply({})
        await node.reached("f", name, EventType.STEP_EXITED, "ordered")
    begun["c"].reply({})
    assert await node.error_of("f", "c") == "FnF.ResourceThrottled"


async def test_a_caller_s_calls_take_no_waiting_place_of_steps(node: Node, functions: Functions) -> None:
    """`waitingMax` bounds the calls of steps, and by itself those of callers."""
    await node.operations.functions.put(
        "shop", "pay", url=functions.url("shop/pay"), headers={}, timeout_seconds=None, concurrency_max=1, waiting_max=1
    )
    await node.create_flow("f", "- {type: task, name: pay, resourceArn: 'acs:fc:::services/shop/functions/pay'}")
    calls = [
        asyncio.create_task(node.operations.invocations.invoke("shop", "", "pay", b"{}", request_id="r"))
        for _ in range(2)
    ]
    begun = await functions.next_call("shop/pay")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not node.engine.slots.are_crowded:
            await node.engine.committer.write(lambda _: None)
    with pytest.raises(FlowServerError):
        await node.operations.invocations.invoke("shop", "", "pay", b"{}", request_id="r")
    await node.start("f", "e")
    begun.reply({})
    for _ in range(2):
        (await functions.next_call("shop/pay")).reply({})
    assert (await node.end_of("f", "e")).error is None
    await asyncio.gather(*calls)
