"""Live histories over a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx
import pytest
from sqlalchemy import update
from starlette.types import Message

from flowserver.api.large_bodies import PIECE_BYTES
from flowserver.api.middleware import STALLED_SECONDS, AnswerStalled
from flowserver.api.rest.events import EventStream
from flowserver.operations.held_requests import HeldRequests
from flowserver.server import Application
from flowserver.store.schema.tables import executions
from tests.api.rest.conftest import WAIT, put_callback_flow
from tests.invokers.wire_server import WireServer
from tests.support.server import ServerProcess

RUN = "/v1/flows/ask/executions/run"


async def events_of(response: httpx.Response) -> AsyncIterator[dict]:
    """The events of a stream, as they arrive."""
    assert response.status_code == 200
    event_id = None
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            event_id = value
        elif name == "data":
            event = json.loads(value)
            assert event_id == str(event["eventId"])
            yield event


async def messages_of(response: httpx.Response) -> AsyncIterator[tuple[str, dict]]:
    """Messages of a stream, as they arrive: their names, "" for events, and what they say."""
    message: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            field, _, value = line.partition(": ")
            message[field] = value
        elif "data" in message:
            assert ("id" in message) is ("event" not in message)
            yield message.get("event", ""), json.loads(message["data"])
            message = {}


@pytest.fixture
async def running(live: httpx.AsyncClient, functions: WireServer) -> None:
    """Execution `run` of flow `ask` waits for a report, or soon will."""
    await put_callback_flow(live, functions)
    await live.post("/v1/flows/ask/executions", json={"name": "run"})


async def test_events_arrive_as_they_happen_until_the_last(live: httpx.AsyncClient, running: None) -> None:
    seen = []
    token = ""
    async with live.stream("GET", f"{RUN}/events/stream") as response:
        async for event in events_of(response):
            seen.append(event)
            if event["type"] == "StepStarted":
                token = event["detail"]["input"]["token"]
            if event["type"] == "TaskSubmitted":
                await live.post("/v1/tasks/succeed", json={"taskToken": token, "output": {"n": 10**30}})
    assert seen[-1]["type"] == "ExecutionSucceeded"
    assert seen[-1]["detail"] == {"output": {"answer": {"n": 10**30}}}
    assert seen == (await live.get(f"{RUN}/events")).json()["events"]
    async with live.stream("GET", f"{RUN}/events/stream?paths=true&after=2") as response:
        placed = [event async for event in events_of(response)]
    assert placed == (await live.get(f"{RUN}/events?paths=true")).json()["events"][2:]
    assert {each["stepPath"] for each in placed} == {"ask", ""}
    response = await live.get(f"{RUN}/events/stream", headers={"Last-Event-ID": str(seen[-1]["eventId"])})
    assert response.status_code == 204


async def test_a_reconnecting_client_misses_nothing(live: httpx.AsyncClient, running: None) -> None:
    seen: list[int] = []
    while len(seen) < 5:  # one event a connection: up to TaskSubmitted
        headers = {"Last-Event-ID": str(seen[-1])} if seen else {}
        async with live.stream("GET", f"{RUN}/events/stream", headers=headers) as response:
            async for event in events_of(response):
                seen.append(event["eventId"])
                break
    assert seen == [1, 2, 3, 4, 5]


async def test_messages_of_changed_steps_come_before_their_events(live: httpx.AsyncClient, running: None) -> None:
    """So a client that goes on after the last event that it has has the summary after that event at least."""
    summary = (await live.get(f"{RUN}/steps?at=1")).json()
    steps = {step["path"]: step for step in summary["steps"]}
    last, token, headers = summary["lastEventId"], "", {}
    stream = f"{RUN}/events/stream?steps=true&after={last}"
    for until in ("TaskSubmitted", "ExecutionSucceeded"):
        async with live.stream("GET", stream, headers=headers) as response:
            async for name, data in messages_of(response):
                if name == "steps":
                    changes = data
                    steps |= {step["path"]: step for step in changes["steps"]}
                    continue
                assert last < data["eventId"] <= changes["lastEventId"]
                last = data["eventId"]
                if data["type"] == "StepStarted":
                    token = data["detail"]["input"]["token"]
                if data["type"] == until:
                    break  # here the connection is lost
        headers = {"Last-Event-ID": str(last)}
        await live.post("/v1/tasks/succeed", json={"taskToken": token, "output": {}})
    whole = (await live.get(f"{RUN}/steps")).json()
    assert list(steps.values()) == whole["steps"]
    assert changes == {name: value for name, value in whole.items() if name in changes} | {"steps": changes["steps"]}
    assert (await live.get(stream, headers=headers)).status_code == 204


async def test_a_client_that_disconnects_is_removed(live: httpx.AsyncClient, running: None, app: Application) -> None:
    watchers = app.state.engine.watchers
    watch_changes = watchers.watch_changes
    left = asyncio.Event()

    @contextmanager
    def observed(execution_id: str) -> Iterator[asyncio.Event]:
        with watch_changes(execution_id) as changed:
            try:
                yield changed
            finally:
                left.set()

    watchers.watch_changes = observed
    async with live.stream("GET", f"{RUN}/events/stream") as response:
        async for event in events_of(response):
            if event["type"] == "TaskSubmitted":
                break
        assert not left.is_set()
    await asyncio.wait_for(left.wait(), 30)


async def test_a_stream_of_a_parked_execution_continues_with_it(
    live: httpx.AsyncClient, running: None, app: Application
) -> None:
    token, seen = "", []
    async with live.stream("GET", f"{RUN}/events/stream") as response:
        async for event in events_of(response):
            if event["type"] == "StepStarted":
                token = event["detail"]["input"]["token"]
            if event["type"] == "TaskSubmitted":
                break
    with app.state.engine.database.write() as connection:
        connection.execute(update(executions).values(parked_error="a bug"))
    last = {"Last-Event-ID": str(event["eventId"])}
    async with live.stream("GET", f"{RUN}/events/stream", headers=last) as response:
        assert response.status_code == 200
        assert (await live.post(f"{RUN}/restart")).json()["parkedError"] is None
        await live.post("/v1/tasks/succeed", json={"taskToken": token, "output": {"n": 1}})
        async for event in events_of(response):
            seen.append(event["type"])
    assert seen[0] == "TaskSucceeded"
    assert seen[-1] == "ExecutionSucceeded"


async def test_past_events_come_in_few_pieces(live: httpx.AsyncClient) -> None:
    steps = "".join(f"  - {{type: pass, name: p{number}}}\n" for number in range(150))
    await live.put("/v1/flows/long", json={"definition": f"version: v1\ntype: flow\nsteps:\n{steps}"})
    await live.post("/v1/flows/long/executions?wait=30", json={"name": "run"})
    async with live.stream("GET", "/v1/flows/long/executions/run/events/stream") as response:
        pieces = [piece async for piece in response.aiter_raw()]
    events = b"".join(pieces).count(b"data: ")
    assert events == 602
    assert len(pieces) < events / 10
    assert max(map(len, pieces)) < 2 * PIECE_BYTES


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    has_ended = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"data: {}\r\n\r\n"
        finally:
            has_ended.set()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # the connection's buffer is full

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    stream = EventStream(pieces(), HeldRequests(1).take())
    assert stream.send_timeout == STALLED_SECONDS
    stream.send_timeout = 0.01
    with pytest.raises(AnswerStalled):
        await stream({"type": "http", "method": "GET"}, receive, send)
    assert has_ended.is_set()


async def test_a_stream_ends_with_its_flow(live: httpx.AsyncClient, running: None) -> None:
    async with live.stream("GET", f"{RUN}/events/stream") as response:
        async for event in events_of(response):
            if event["type"] == "TaskSubmitted":
                await live.delete("/v1/flows/ask")
    assert (await live.get("/v1/flows/ask")).status_code == 404


def test_a_stopping_server_ends_its_streams(sqlite_url: str) -> None:
    with ServerProcess(sqlite_url) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        client.put("/v1/flows/order", json={"definition": WAIT})
        client.post("/v1/flows/order/executions", json={"name": "run"})
        with client.stream("GET", "/v1/flows/order/executions/run/events/stream") as response:
            lines = response.iter_lines()
            assert next(lines) == "id: 1"
            server.process.terminate()
            rest = list(lines)
        assert "id: 3" in rest
        assert server.process.wait(30) == 0
