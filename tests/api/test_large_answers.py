"""Large answers are made outside the event loop, sent in pieces, limited in number, and dropped for
closed connections.
"""

import asyncio
import json
import threading
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from flowserver.api.fc import invocations
from flowserver.api.middleware import LARGE_BYTES, PIECE_BYTES, LargeAnswers, RequestFrame
from flowserver.api.rest import answers
from flowserver.api.rpc import local_actions
from flowserver.api.rpc.router import RpcRoute
from flowserver.base.limits import Limits
from flowserver.base.request_context import present_request
from flowserver.front.front import Front
from flowserver.server import create_app
from flowserver.settings import Settings
from tests.engine.nodes import definition
from tests.support.clock import ManualClock

LARGE = bytes(range(256)) * 8_000
SCOPE: Scope = {
    "type": "http",
    "method": "GET",
    "path": "/",
    "query_string": b"",
    "headers": [(b"host", b"localhost")],
    "client": ("127.0.0.1", 1),
}


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(LARGE if scope["path"] == "/" else b"small")(scope, receive, send)


class Client:
    """An application's connection: accepts messages, and while `is_reading` is cleared, no body."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self.begun = asyncio.Event()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            self.begun.set()
            await self.is_reading.wait()
        self.messages.append(message)

    async def receive(self) -> Message:
        return {"type": "http.request", "body": b""}

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def frame(large_answers_max: int = 9) -> RequestFrame:
    return RequestFrame(answer, 1_000, lambda: False, LargeAnswers(large_answers_max))


async def test_a_large_body_is_sent_in_pieces_with_others_in_between() -> None:
    client, turns = Client(), 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_turns())
    await frame()(SCOPE, client.receive, client.send)
    counting.cancel()
    pieces = client.messages[1:]
    assert client.body == LARGE
    assert {len(piece["body"]) for piece in pieces[:-1]} == {PIECE_BYTES}
    assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert turns >= len(pieces)


@pytest.mark.parametrize("app", ["large", "stream"])
async def test_many_answers_take_turns_to_send_a_piece(app: str) -> None:
    """Otherwise others wait in each round of the event loop for a piece of every answer."""
    rounds, done = [0], asyncio.Event()

    async def stream(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"x" * (PIECE_BYTES // 2 + 1), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def count_rounds() -> None:
        while not done.is_set():
            await asyncio.sleep(0)
            rounds.append(0)

    async def send(message: Message) -> None:
        rounds[-1] += len(message.get("body", b""))

    serving = RequestFrame(stream if app == "stream" else answer, 1_000, lambda: False, LargeAnswers(99))
    counting = asyncio.create_task(count_rounds())
    await asyncio.gather(*(serving(dict(SCOPE), Client().receive, send) for _ in range(30)))
    done.set()
    await counting
    beginning = next(number for number, size in enumerate(rounds) if size)
    assert rounds[beginning] <= 30 * 2 * PIECE_BYTES  # a stream is not known to be long before that
    assert max(rounds[beginning + 1 :]) <= 2 * PIECE_BYTES


async def test_at_most_one_piece_is_written_for_a_client_that_does_not_read() -> None:
    client = Client()
    client.is_reading.clear()
    serving = asyncio.create_task(frame()(SCOPE, client.receive, client.send))
    await client.begun.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(client.messages) == 1
    client.is_reading.set()
    await serving
    assert client.body == LARGE


async def test_large_answers_under_way_are_limited_and_small_ones_are_not() -> None:
    served, clients = frame(large_answers_max=2), [Client() for _ in range(2)]
    for client in clients:
        client.is_reading.clear()
    serving = [asyncio.create_task(served(SCOPE, client.receive, client.send)) for client in clients]
    await asyncio.gather(*(client.begun.wait() for client in clients))
    refused, small = Client(), Client()
    await served(SCOPE, refused.receive, refused.send)
    assert (refused.status, json.loads(refused.body)["Code"]) == (429, "ResourceThrottled")
    await served({**SCOPE, "path": "/small"}, small.receive, small.send)
    assert (small.status, small.body) == (200, b"small")
    clients[0].is_reading.set()
    await serving[0]
    last = Client()
    await served(SCOPE, last.receive, last.send)
    assert last.body == LARGE
    clients[1].is_reading.set()
    await serving[1]


async def test_a_key_leaves_places_to_others() -> None:
    async def answer_to(scope: Scope, receive: Receive, send: Send) -> None:
        request = present_request()
        assert request is not None
        request.key_id = scope["client"][0]
        await answer(scope, receive, send)

    served = RequestFrame(answer_to, 1_000, lambda: False, LargeAnswers(32))
    clients = [Client() for _ in range(32)]
    for client in clients:
        client.is_reading.clear()
    greedy = [asyncio.create_task(served({**SCOPE, "client": ("a", 1)}, each.receive, each.send)) for each in clients]
    await asyncio.gather(*(client.begun.wait() for client in clients))
    other = Client()
    await served({**SCOPE, "client": ("b", 1)}, other.receive, other.send)
    assert other.body == LARGE
    for client in clients:
        client.is_reading.set()
    await asyncio.gather(*greedy)
    assert sorted(client.status for client in clients) == [200] * 27 + [429] * 5


@pytest.mark.parametrize(
    ("method", "said", "is_refused"),
    [("GET", None, True), ("POST", None, False), ("GET", True, False), ("POST", False, True)],
)
async def test_a_request_that_has_changed_data_is_always_answered(
    method: str, said: bool | None, is_refused: bool
) -> None:
    """A refusal would make the client repeat it."""
    client, state = Client(), {} if said is None else {"changes": said}
    await frame(large_answers_max=0)({**SCOPE, "method": method, "state": state}, client.receive, client.send)
    assert (client.status == 429) == is_refused


async def test_a_client_that_stops_reading_is_disconnected_and_its_slot_is_free() -> None:
    served, client = frame(large_answers_max=1), Client()
    client.is_reading.clear()
    served.stalled_seconds = 0
    await served(SCOPE, client.receive, client.send)
    assert client.body == b""
    client = Client()
    await served(SCOPE, client.receive, client.send)
    assert client.body == LARGE


async def test_files_of_the_console_take_no_places(sqlite_url: str) -> None:
    """All their readers share one body; a client without a key that reads slowly must not keep others waiting."""
    limits = Limits()
    scope = {**SCOPE, "path": "/console/vendor/codemirror.js"}
    front = Front(limits, ManualClock(), ())
    for served in (create_app(Settings(database_url=sqlite_url)), front._console):
        clients = [Client() for _ in range(limits.large_answers_max + 1)]
        for client in clients:
            client.is_reading.clear()
        serving = [asyncio.create_task(served(dict(scope), each.receive, each.send)) for each in clients]
        await asyncio.gather(*(client.begun.wait() for client in clients))
        assert [client.status for client in clients] == [200] * len(clients)
        for client in clients:
            client.is_reading.set()
        await asyncio.gather(*serving)
        assert len(clients[-1].body) > LARGE_BYTES


async def test_actions_declare_whether_they_change_data() -> None:
    """Old SDKs send every action by GET, others by POST."""

    async def act(action: str, _parameters: Mapping[str, str], _request_id: str, *_caller: str) -> list[bytes]:
        return [LARGE]

    access: Any = OpenAccess()
    served = frame(large_answers_max=0)
    served._app = RpcRoute(act, access, ManualClock(), (), Limits())
    for action, status in (("StartSyncExecution", 200), ("ListFlows", 429)):
        for method in ("GET", "POST"):
            client = Client()
            query = f"Action={action}".encode()
            headers = [(b"host", b"127.0.0.1")]
            scope = {**SCOPE, "method": method, "query_string": query, "headers": headers}
            await served(scope, client.receive, client.send)
            assert (action, method, client.status) == (action, method, status)


class OpenAccess:
    async def is_open(self) -> bool:
        return True

    async def check_open(self) -> None: ...


@pytest.fixture
def encoders(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the threads that have made pages."""
    names: set[str] = set()
    for module, function in (
        (local_actions, "page_in_pieces"),
        (answers, "page_in_pieces"),
        (invocations, "_invocations"),
    ):
        monkeypatch.setattr(module, function, _noted(getattr(module, function), names))
    return names


def _noted(make: Any, names: set[str]) -> Any:
    def noted(*arguments: Any, **named: Any) -> Any:
        names.add(threading.current_thread().name)
        return make(*arguments, **named)

    return noted


async def test_pages_are_made_outside_the_event_loop(client: httpx.AsyncClient, encoders: set[str]) -> None:
    """A page of flows is limited in bytes; over REST it has no definitions."""
    for number in range(20):
        text = definition("- {type: pass, name: p}") + "#" * 250_000
        created = await client.post("/v1/flows", json={"name": f"f{number:02}", "definition": text})
        assert created.status_code == 201
    page = (await client.post("/", data={"Action": "ListFlows"})).json()
    assert [flow["Name"] for flow in page["Flows"]] == [f"f{number:02}" for number in range(16)]
    rest = (await client.post("/", data={"Action": "ListFlows", "NextToken": page["NextToken"]})).json()
    assert [flow["Name"] for flow in rest["Flows"]] == [f"f{number}" for number in range(16, 20)]
    assert "NextToken" not in rest
    flows = (await client.get("/v1/flows")).json()
    assert (len(flows["flows"]), flows["nextToken"]) == (20, None)
    await client.post("/v1/flows/f00/executions", json={"name": "e"})
    for path in ("/v1/functions", "/v1/flows/f00/executions", "/v1/flows/f00/executions/e/events"):
        assert (await client.get(path)).status_code == 200
    path = "/2016-08-15/services/s/functions/f/stateful-async-invocations"
    assert (await client.get(path)).status_code == 200
    assert {name.rpartition("_")[0] for name in encoders} == {"encoding"}
