"""Hooks of hosted functions: when they run, the module that they share with the handler, and their failures."""

import asyncio
import base64
import logging
from dataclasses import replace

import httpx
import pytest

from flowserver.hosting.http_app import build_app
from flowserver.hosting.logs import keep_log, plain, set_up_logs, tail_of

HOOKED = """\
seen = []
fails = False

def initialize(context):
    seen.append(f"initialize {context.request_id}")
    if fails:
        raise ConnectionError("no database")

def handler(event, context):
    seen.append("call")
    return seen

def freeze(context):
    seen.append("freeze")

def stop(context):
    seen.append(f"stop {context.function.name}")
"""
HOOKS = {
    "handler": "m.py:handler",
    "initializer": "m.py:initialize",
    "preFreeze": "m.py:freeze",
    "preStop": "m.py:stop",
}
ID = {"X-Fc-Request-Id": "id-1"}


def of(hosted, title="s/f"):
    """The names in a function's module."""
    return hosted[title].handler.__globals__


@pytest.fixture
def hooked(host):
    return host({"m.py": HOOKED}, {"s/f": HOOKS})


async def test_the_initializer_runs_once_before_the_first_call(hooked, client_of):
    client = client_of({"s/f": replace(hooked["s/f"], pre_freeze=None)})
    assert (await client.post("/s/f", headers=ID)).json() == ["initialize id-1", "call"]
    assert (await client.post("/s/f")).json() == ["initialize id-1", "call", "call"]


async def test_the_initializer_runs_once_for_several_calls(host, client_of):
    text = """
import threading
begun, go, runs = threading.Event(), threading.Event(), []
def initialize(context):
    runs.append(1)
    begun.set()
    go.wait(20)
def handler(event, context): return len(runs)
"""
    hosted = host({"m.py": text}, {"s/f": {"handler": "m.py:handler", "initializer": "m.py:initialize"}})
    client = client_of(hosted)
    calls = [asyncio.create_task(client.post(path)) for path in ("/s/f", "/s/f", "/s/f/initialize")]
    await asyncio.to_thread(of(hosted)["begun"].wait, 20)
    of(hosted)["go"].set()
    assert [reply.status_code for reply in await asyncio.gather(*calls)] == [200, 200, 200]
    assert (await client.post("/s/f")).json() == 1


async def test_a_failed_initializer_fails_the_call_and_runs_again(hooked, client_of):
    client = client_of({"s/f": replace(hooked["s/f"], pre_freeze=None)})
    of(hooked)["fails"] = True
    reply = await client.post("/s/f")
    assert reply.headers["x-fc-error-type"] == "UnhandledInvocationError"
    assert (reply.json()["errorType"], reply.json()["errorMessage"]) == ("ConnectionError", "no database")
    of(hooked)["fails"] = False
    assert (await client.post("/s/f", headers=ID)).json()[1:] == ["initialize id-1", "call"]


async def test_the_server_may_call_the_initializer(hooked, client_of):
    client = client_of(hooked)
    of(hooked)["fails"] = True
    refused = await client.post("/s/f/initialize", headers=ID)
    assert (refused.status_code, refused.json()["errorType"]) == (404, "ConnectionError")
    of(hooked)["fails"] = False
    for _ in range(2):
        reply = await client.post("/s/f/initialize", headers=ID)
        assert (reply.status_code, reply.content, reply.headers["x-fc-request-id"]) == (200, b"", "id-1")
    assert of(hooked)["seen"] == ["initialize id-1"] * 2


async def test_functions_without_hooks_accept_hook_calls(host, client_of):
    client = client_of(host({"m.py": HOOKED}, {"s/f": "m.py:handler"}))
    assert (await client.post("/s/f/initialize")).status_code == 200
    assert (await client.get("/s/f/pre-stop")).status_code == 200
    assert (await client.get("/s/none/pre-stop")).status_code == 404


async def test_pre_freeze_runs_when_no_call_is_under_way(host, client_of):
    text = """
import threading
begun, go, frozen, freezes = threading.Semaphore(0), threading.Event(), threading.Event(), []
def handler(event, context):
    begun.release()
    if event == b"long":
        go.wait(20)
def freeze(context):
    freezes.append(context.request_id)
    frozen.set()
"""
    hosted = host({"m.py": text}, {"s/f": {"handler": "m.py:handler", "preFreeze": "m.py:freeze"}})
    names, client = of(hosted), client_of(hosted)
    long = asyncio.create_task(client.post("/s/f", content=b"long", headers=ID))
    await asyncio.to_thread(names["begun"].acquire)
    await client.post("/s/f", content=b"short")
    assert names["freezes"] == []
    names["go"].set()
    await long
    await asyncio.to_thread(names["frozen"].wait, 20)
    assert names["freezes"] == ["id-1"]


async def test_pre_stop_runs_on_request(hooked, client_of):
    reply = await client_of(hooked).get("/s/f/pre-stop", headers=ID)
    assert (reply.status_code, reply.headers["x-fc-request-id"]) == (200, "id-1")
    assert of(hooked)["seen"] == ["stop f"]


async def test_a_hook_that_exceeds_its_time(host, client_of):
    text = "import threading\ndef handler(e, c): ...\ndef stop(context): threading.Event().wait()"
    hosted = host({"m.py": text}, {"s/f": {"handler": "m.py:handler", "preStop": "m.py:stop"}})
    hasty = {"s/f": replace(hosted["s/f"], hook_seconds=0.05)}
    reply = await client_of(hasty).get("/s/f/pre-stop")
    assert (reply.status_code, reply.json()) == (404, {"errorMessage": "PreStop timed out after 0.05 seconds"})


async def test_pre_stop_runs_at_shutdown_for_called_functions(host):
    files = {"m.py": HOOKED, "n.py": HOOKED}
    hooks = {"handler": "n.py:handler", "preStop": "n.py:stop"}
    hosted = host(files, {"s/f": HOOKS, "s/g": hooks, "s/h": hooks})
    app = build_app(hosted)
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://hosting")
    async with app.router.lifespan_context(app), client:
        await client.post("/s/f", headers=ID)
        await client.post("/s/g")
    assert sorted(of(hosted)["seen"][2:]) == ["freeze", "stop f"]
    assert of(hosted, "s/g")["seen"] == ["call", "stop g"]
    assert of(hosted, "s/h")["seen"] == []


async def test_a_handler_learns_that_its_caller_has_disconnected(host):
    text = """
import threading
ended = threading.Event()
def handler(event, context):
    assert context.stopped.wait(20)
    ended.set()
"""
    hosted = host({"m.py": text}, {"s/f": "m.py:handler"})
    messages = iter([{"type": "http.request", "body": b"{}"}, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    async def send(_):
        pass

    scope = {"type": "http", "method": "POST", "path": "/s/f", "query_string": b"", "headers": []}
    await build_app(hosted)(scope, receive, send)
    assert of(hosted)["ended"].is_set()


async def test_a_handler_learns_that_its_time_is_over(host, client_of):
    text = """
import threading
ended = threading.Event()
def handler(event, context):
    if context.stopped.wait(20):
        ended.set()
"""
    hosted = host({"m.py": text}, {"s/f": "m.py:handler"})
    await client_of({"s/f": replace(hosted["s/f"], timeout_seconds=0.05)}).post("/s/f")
    assert await asyncio.to_thread(of(hosted)["ended"].wait, 20)


async def test_log_lines_of_hooks(hooked, client_of, caplog):
    of(hooked)["fails"] = True
    with caplog.at_level(logging.INFO):
        await client_of(hooked).post("/s/f/initialize", headers=ID)
        await client_of(hooked).get("/s/f/pre-stop", headers=ID)
    lines = [record.getMessage() for record in caplog.records if record.name == "flowserver.hosting"]
    assert lines == [
        "FC Initialize Start RequestId: id-1",
        "FC Initialize End RequestId: id-1, Error: Unhandled Initialize error",
        "FC PreStop Start RequestId: id-1",
        "FC PreStop End RequestId: id-1",
    ]


@pytest.fixture
def own_logs():
    """The program's own logging, undone afterwards."""
    root = logging.getLogger()
    before = [(logger, list(logger.handlers), logger.level, logger.propagate) for logger in (root, plain)]
    set_up_logs()
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


async def test_the_end_of_the_log_is_returned_on_request(host, client_of, own_logs):
    text = "import logging\ndef handler(event, context): logging.info('at work on %s', event.decode())"
    client = client_of(host({"m.py": text}, {"s/f": "m.py:handler"}))
    assert "x-fc-log-result" not in (await client.post("/s/f", content=b"1")).headers
    reply = await client.post("/s/f", content=b"2", headers={**ID, "X-Fc-Log-Type": "Tail"})
    first, work, last = base64.b64decode(reply.headers["x-fc-log-result"]).decode().splitlines()
    assert (first, last) == ("FC Invoke Start RequestId: id-1", "FC Invoke End RequestId: id-1")
    assert work.endswith("id-1 [INFO] at work on 2")


def test_a_long_log_is_cut_at_its_beginning():
    lines = keep_log()
    lines += ["a" * 5000, "end"]
    tail = tail_of(lines)
    assert len(tail) == 4096
    assert tail.endswith(b"aa\nend\n")
