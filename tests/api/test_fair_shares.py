"""Two access keys at a server that is too busy: the key that floods it is refused, the other is served."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest

from flowserver.concurrency.load_shedding import TOO_MUCH_OF_ONE_KEY
from flowserver.engine.engine import Engine
from flowserver.engine.reads.slow_reads import LIST_THREADS
from flowserver.operations import access
from flowserver.operations.access import make_access_key
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.access_keys import insert_access_key
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS
from tests.engine.held_threads import Gate

WAITING_MAX = 32
FLOOD = 40

MESSAGE = b'<Message xmlns="http://mns.aliyuncs.com/doc/v1/"><MessageBody>x</MessageBody></Message>'


@dataclass(frozen=True)
class Case:
    """A request, what serves it, and how many such requests wait."""

    method: str
    path: str
    place: str
    waiting: Callable[[Engine], int]
    more: dict[str, Any] = field(default_factory=dict)
    refusal: int = 429

    def hold(self, engine: Engine, gate: Gate) -> list[asyncio.Task[str]]:
        """Occupy what serves the request, until the gate opens."""
        serve = {"writer": engine.committer.write, "reader": engine.reader.ask, "lists": engine.slow_reads.ask}
        count = LIST_THREADS if self.place == "lists" else 1
        return [asyncio.create_task(serve[self.place](gate)) for _ in range(count)]  # type: ignore[operator]


def starts(engine: Engine) -> int:
    return engine.committer._queue.requested


def look_ups(engine: Engine) -> int:
    return len(engine.reader._asked)


def lists(engine: Engine) -> int:
    return len(engine.slow_reads._threads._waiting)


CASES = {
    "start over REST": Case("POST", "/v1/flows/p/executions", "writer", starts, {"json": {}}),
    "start over RPC": Case("POST", "/", "writer", starts, {"data": {"Action": "StartExecution", "FlowName": "p"}}),
    "invocation": Case(
        "POST",
        "/2016-08-15/services/s/functions/f/invocations",
        "writer",
        lambda engine: len(engine.invocations._submissions._waiting),
        {"content": "{}", "headers": {"X-Fc-Invocation-Type": "Async"}},
        refusal=503,  # as that service says it
    ),
    "message": Case(
        "POST",
        "/queues/q/messages",
        "writer",
        lambda engine: len(engine.queues._writes._waiting),
        {"content": MESSAGE},
    ),
    "look-up over REST": Case("GET", "/v1/flows/p", "reader", look_ups),
    "list over REST": Case("GET", "/v1/flows", "lists", lists),
    "list over RPC": Case("GET", "/?Action=ListFlows", "lists", lists),
}


@pytest.fixture
async def server(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Application, httpx.AsyncClient]]:
    """A server on which WAITING_MAX pieces of work may wait, with a flow, a function and a queue."""
    monkeypatch.setattr(access, "REMEMBER_SECONDS", 600)  # no key is looked up again in the test
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    app.state.limits = replace(app.state.limits, pending_messages_max=WAITING_MAX)
    async with app.router.lifespan_context(app), client_of(app) as client:
        (await client.put("/v1/flows/p", json={"definition": PASS})).raise_for_status()
        (await client.put("/v1/functions/s/f", json={"url": "http://127.0.0.1:1/"})).raise_for_status()
        (await client.put("/queues/q")).raise_for_status()
        yield app, client


async def token(app: Application) -> str:
    """The bearer token of a new key."""
    made = make_access_key("test", 0)
    await app.state.engine.committer.write(lambda connection: insert_access_key(connection, made.key))
    app.state.operations.access.expect_key()
    return made.token


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_key_that_floods_is_refused_and_a_quiet_one_is_served(
    server: tuple[Application, httpx.AsyncClient], case: Case
) -> None:
    app, client = server
    engine: Engine = app.state.engine
    tokens = [await token(app) for _ in range(2)]
    for each in tokens:  # the server knows both
        (await client.get("/v1/flows/p", headers={"Authorization": f"Bearer {each}"})).raise_for_status()

    def ask(index: int) -> asyncio.Task[httpx.Response]:
        headers = {**case.more.get("headers", {}), "Authorization": f"Bearer {tokens[index]}"}
        return asyncio.create_task(client.request(case.method, case.path, **{**case.more, "headers": headers}))

    gate = Gate()
    with closing(gate):
        holding = case.hold(engine, gate)
        await gate.reached.wait()
        flood = [ask(0) for _ in range(FLOOD)]
        await until(lambda: case.waiting(engine) + sum(each.done() for each in flood) >= FLOOD)
        waiting = case.waiting(engine)
        assert waiting < WAITING_MAX
        quiet = ask(1)
        await until(lambda: quiet.done() or case.waiting(engine) > waiting)
    answers = await asyncio.gather(*flood, *holding, quiet)
    assert answers[-1].is_success, answers[-1].text
    refused = [each for each in answers[:FLOOD] if not each.is_success]
    assert len(refused) == FLOOD - waiting
    for each in refused:
        assert (each.status_code, each.headers["Retry-After"]) == (case.refusal, "1")
        assert TOO_MUCH_OF_ONE_KEY in each.text


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the server tells its callers nothing of this
            await asyncio.sleep(0)
