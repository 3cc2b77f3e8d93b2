"""A flow sends over a real broker: the settings file names it, and a worker with the broker's own client reports."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from nats.js import JetStreamContext

from tests.docs.pages import DOCS, blocks
from tests.support.nats_server import NatsServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment

EXECUTIONS = 6

ASK = """
version: v1
type: flow
steps:
  - type: task
    name: ask
    resourceArn: acs:mns:::/queues/orders/messages
    pattern: waitForCallback
    inputMappings:
      - {target: n, source: $input.n}
      - {target: taskToken, source: $context.task.token}
    serviceParams: {MessageBody: $}
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[NatsServer]:
    """A broker without a stream."""
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, broker: NatsServer) -> str:
    """The path of a settings file that maps the queue `orders` to the broker."""
    file = tmp_path / "settings.yaml"
    file.write_text(f"queues:\n  orders: {broker.url}/shop.orders?stream=SHOP\n")
    return str(file)


def client_of(server: ServerProcess) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS)


async def work(streams: JetStreamContext, client: httpx.AsyncClient, count: int) -> None:
    """Take this many messages, and report each with its result."""
    orders = await streams.pull_subscribe("shop.orders", durable="clerks", stream="SHOP")
    for _ in range(count):
        (message,) = await orders.fetch(1, timeout=PATIENCE_SECONDS)
        task = json.loads(message.data)
        report = {"taskToken": task["taskToken"], "output": {"seen": task["n"]}}
        (await client.post("/v1/tasks/succeed", json=report)).raise_for_status()
        await message.ack()


async def test_a_worker_takes_tokens_from_the_broker_and_reports(
    sqlite_url: str, settings: str, broker: NatsServer
) -> None:
    await broker.add_stream("SHOP", "shop.>", retention="workqueue")
    with ServerProcess(sqlite_url, "--settings", settings) as first:
        async with client_of(first) as client:
            (await client.post("/v1/flows", json={"name": "f", "definition": ASK})).raise_for_status()
            for n in range(EXECUTIONS):
                body = {"name": f"e{n}", "input": {"n": n}}
                (await client.post("/v1/flows/f/executions", json=body)).raise_for_status()
        first.kill()
    with ServerProcess(sqlite_url, "--settings", settings) as second:
        async with client_of(second) as client, broker.client() as streams:
            await work(streams, client, EXECUTIONS)
            for n in range(EXECUTIONS):
                row = (await client.get(f"/v1/flows/f/executions/e{n}?wait=30")).json()
                assert (row["status"], row["output"]) == ("Succeeded", {"seen": n})
            assert (await streams.stream_info("SHOP")).state.messages == 0


async def test_the_worker_and_the_flow_of_the_documentation(
    sqlite_url: str, broker: NatsServer, tmp_path: Path
) -> None:
    settings, flow, worker = (_block(mark) for mark in ("queues:", "version: v1", "import asyncio"))
    (tmp_path / "settings.yaml").write_text(settings.replace("127.0.0.1:4222", broker.host))
    await broker.add_stream("SHOP", "shop.>", retention="workqueue")
    with ServerProcess(sqlite_url, "--settings", "settings.yaml", folder=tmp_path) as server:
        program = worker.replace("nats://127.0.0.1:4222", broker.url).replace("http://127.0.0.1:8080", server.url)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, env=clean_environment())
        try:
            async with client_of(server) as client:
                (await client.post("/v1/flows", json={"name": "f", "definition": flow})).raise_for_status()
                body = {"name": "e", "input": {"order": 7}}
                (await client.post("/v1/flows/f/executions", json=body)).raise_for_status()
                row = (await client.get("/v1/flows/f/executions/e?wait=30")).json()
        finally:
            process.kill()
            await process.wait()
    assert (row["status"], row["output"]) == ("Succeeded", {"accepted": 7})


def _block(beginning: str) -> str:
    (text,) = (block.text for block in blocks(DOCS / "how-to" / "nats.md") if block.text.startswith(beginning))
    return text


async def test_the_message_service_reports_that_the_queue_is_elsewhere(sqlite_url: str, settings: str) -> None:
    with ServerProcess(sqlite_url, "--settings", settings) as server:
        async with client_of(server) as client:
            for method, path in (("PUT", "/queues/orders"), ("GET", "/queues/orders/messages?waitseconds=30")):
                answer = await client.request(method, path)
                assert answer.status_code == 400
                assert "<Code>InvalidArgument</Code>" in answer.text
                assert "queue orders is kept by a broker" in answer.text
            assert "orders" not in (await client.get("/queues")).text
