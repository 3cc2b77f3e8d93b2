"""The services around the flows: messages through a queue, the wait of a long poll, asynchronous invocations."""

import asyncio
import json
import re
import time
from base64 import b64encode

from tests.benchmarks.client import Reply
from tests.benchmarks.figures import Figures, Rows, cost_figures, latency_figures
from tests.benchmarks.load import run_in_flight
from tests.benchmarks.stage import Stage
from tests.benchmarks.workloads import IN_FLIGHT, Scale, finish

WORKERS = 32
BODY = b64encode(json.dumps({"taskToken": "x" * 120, "order": {"id": 12345}}).encode()).decode()
MESSAGE = f'<Message xmlns="http://mns.aliyuncs.com/doc/v1/"><MessageBody>{BODY}</MessageBody></Message>'.encode()
HANDLE = re.compile(rb"<ReceiptHandle>([^<]+)</ReceiptHandle>")
INVOCATIONS = "/2016-08-15/services/bench/functions/echo"
LOOK_SECONDS = 0.02


async def queue(stage: Stage, scale: Scale) -> Rows:
    """32 workers send messages one by one, then receive them one by one, then delete them; one row for each."""
    count = scale(5_000)
    await _create_queue(stage, "work")
    handles: list[bytes] = []

    async def send(_: int) -> None:
        _require(await stage.client.send("POST", "/queues/work/messages", MESSAGE, "text/xml"), 201)

    async def receive(_: int) -> None:
        reply = await stage.client.get("/queues/work/messages")
        handles.append(HANDLE.findall(_require(reply, 200).body)[0])

    async def delete(number: int) -> None:
        path = f"/queues/work/messages?ReceiptHandle={handles[number].decode()}"
        _require(await stage.client.send("DELETE", path, b"", "text/xml"), 204)

    await run_in_flight(range(2 * WORKERS), WORKERS, send)
    await run_in_flight(range(2 * WORKERS), WORKERS, receive)
    handles.clear()
    pieces = {"sent": send, "received": receive, "deleted": delete}
    rows: Rows = {}
    for word, piece in pieces.items():
        before = stage.read()
        latencies = await run_in_flight(range(count), WORKERS, piece)
        rows[f"queue {word}"] = finish(stage, latency_figures(latencies) | cost_figures(before, stage.read(), count))
    assert len(set(handles)) == count, "a message was received twice"
    return rows


async def long_poll(stage: Stage, scale: Scale) -> Rows:
    """From a send to the answer of the long poll that waits for it, repeated, while 31 polls wait at another queue."""
    count = scale(300)
    await _create_queue(stage, "asked")
    await _create_queue(stage, "silent")
    others = [
        asyncio.create_task(stage.client.get("/queues/silent/messages?waitseconds=30")) for _ in range(WORKERS - 1)
    ]

    async def piece(_: int) -> float:
        waiting = asyncio.create_task(stage.client.get("/queues/asked/messages?waitseconds=30"))
        await asyncio.sleep(LOOK_SECONDS)  # the poll waits by now
        began = time.perf_counter()
        _require(await stage.client.send("POST", "/queues/asked/messages", MESSAGE, "text/xml"), 201)
        handle = HANDLE.findall(_require(await waiting, 200).body)[0].decode()
        took = time.perf_counter() - began
        path = f"/queues/asked/messages?ReceiptHandle={handle}"
        _require(await stage.client.send("DELETE", path, b"", "text/xml"), 204)
        return took

    await run_in_flight(range(min(count, 20)), 1, piece)
    before = stage.read()
    figures = latency_figures(await run_in_flight(range(count), 1, piece)) | cost_figures(before, stage.read(), count)
    for other in others:
        other.cancel()
    await asyncio.wait(others)
    del figures["per_second"]  # the pause before each send determines it
    return {"long poll": finish(stage, figures)}


async def tasks(stage: Stage, scale: Scale) -> Rows:
    """1,000 asynchronous invocations, 64 in flight, until all have succeeded."""
    count = scale(1_000)
    await _invoke_all(stage, "warm", min(count, 2 * IN_FLIGHT))
    before = stage.read()
    latencies = await _invoke_all(stage, "task", count)
    figures: Figures = latency_figures(latencies) | cost_figures(before, stage.read(), count)
    return {"tasks": finish(stage, figures)}


async def _invoke_all(stage: Stage, prefix: str, count: int) -> list[float]:
    """Returns seconds from each submission to its 202, once all invocations have succeeded."""

    async def piece(number: int) -> None:
        kind = f"x-fc-invocation-type: Async\r\nx-fc-stateful-async-invocation-id: {prefix}-{number}\r\n"
        path = f"{INVOCATIONS}/invocations"
        _require(await stage.client.send("POST", path, b'{"n":1}', "application/json", kind.encode()), 202)

    latencies = await run_in_flight(range(count), IN_FLIGHT, piece)
    left = set(range(count))
    while left:
        ended = [number for number in left if await _has_succeeded(stage, f"{prefix}-{number}")]
        left.difference_update(ended)
        if left:
            await asyncio.sleep(LOOK_SECONDS)
    return latencies


async def _has_succeeded(stage: Stage, invocation_id: str) -> bool:
    reply = await stage.client.get(f"{INVOCATIONS}/stateful-async-invocations/{invocation_id}")
    status = json.loads(_require(reply, 200).body)["status"]
    assert status in ("Enqueued", "Dequeued", "Running", "Succeeded"), status
    return bool(status == "Succeeded")


async def _create_queue(stage: Stage, name: str) -> None:
    reply = await stage.client.send("PUT", f"/queues/{name}", b"", "text/xml")
    assert reply.status in (201, 204), reply.body


def _require(reply: Reply, status: int) -> Reply:
    assert reply.status == status, reply
    return reply
