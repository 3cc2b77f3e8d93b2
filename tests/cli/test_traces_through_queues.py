"""`traceparent` goes on through what waits in the database: queues, topics, deliveries, asynchronous invocations."""

from collections.abc import Mapping
from queue import SimpleQueue
from typing import Any

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from flowserver.base.span_ids import SpanRef, read_traceparent, write_traceparent
from tests.cli.test_tracing import CALLER, client_of
from tests.support.collector import Collector
from tests.support.function_server import Call, FunctionServer
from tests.support.push_server import PushServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

FLOW = """
version: v1
type: flow
steps:
  - {type: task, name: send, resourceArn: 'acs:mns:::/queues/work/messages', serviceParams: {MessageBody: $}}
  - {type: task, name: publish, resourceArn: 'acs:mns:::/topics/news/messages', serviceParams: {MessageBody: $}}
  - type: task
    name: submit
    resourceArn: acs:fc:::services/shop/functions/print
    serviceParams: {InvocationType: Async}
"""
MESSAGE = "<Message><MessageBody>m</MessageBody></Message>"
INVOKE = "/2016-08-15/services/shop/functions/print/invocations"
SENT = {"traceparent": write_traceparent(CALLER)}


class Calls:
    """What functions were called with."""

    def __init__(self) -> None:
        self._headers: SimpleQueue[Mapping[str, str]] = SimpleQueue()

    def answer(self, call: Call) -> dict[str, Any]:
        self._headers.put(call.headers)
        return {}

    def next(self) -> str | None:
        """The header of the next call."""
        return self._headers.get(timeout=PATIENCE_SECONDS).get("traceparent")


def subscribe(client: httpx.Client, name: str, endpoint: str) -> None:
    fields = f"<Endpoint>{endpoint}</Endpoint><NotifyContentFormat>SIMPLIFIED</NotifyContentFormat>"
    content = f"<Subscription>{fields}</Subscription>"
    client.put(f"/topics/news/subscriptions/{name}", content=content).raise_for_status()


def received(client: httpx.Client, queue: str) -> str:
    """The message that comes next, as XML."""
    answer = client.get(f"/queues/{queue}/messages?waitseconds=30")
    assert answer.status_code == 200, answer.text
    return answer.text


def header_of(span: Span) -> str:
    return write_traceparent(SpanRef(int.from_bytes(span.trace_id), int.from_bytes(span.span_id)))


def is_below_caller(traceparent: str | None) -> bool:
    """Whether it names a span in the caller's trace, which is not the caller's own."""
    ref = read_traceparent(traceparent or "")
    return ref is not None and ref.trace_id == CALLER.trace_id and ref.span_id != CALLER.span_id


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_trace_goes_on_where_messages_and_invocations_arrive(sqlite_url: str, processes: str) -> None:
    calls = Calls()
    flags = ("--processes", processes, "--tracing", "otlp")
    with (
        Collector() as collector,
        FunctionServer(calls.answer) as functions,
        PushServer() as pushes,
        ServerProcess(sqlite_url, *flags, environment=collector.environment) as server,
        client_of(server) as client,
    ):
        functions.register(server.url, "shop/print")
        for path in ("/queues/work", "/queues/copies", "/queues/done"):
            client.put(path, content="<Queue/>").raise_for_status()
        client.put("/topics/news", content="<Topic/>").raise_for_status()
        subscribe(client, "web", f"{pushes.url}/hook")
        subscribe(client, "queue", "acs:mns:::queues/copies")
        client.put("/v1/flows/f", json={"definition": FLOW}).raise_for_status()
        client.post("/v1/flows/f/executions?wait=60", json={"name": "e"}).raise_for_status()
        sent, published, submitted = (header_of(collector.wait_for(name)) for name in ("send", "publish", "submit"))
        peeked = client.get("/v1/queues/work/messages").json()["messages"]
        assert [message["traceparent"] for message in peeked] == [sent]
        assert f"<TraceParent>{sent}</TraceParent>" in received(client, "work")
        assert pushes.next().headers["traceparent"] == published
        assert f"<TraceParent>{published}</TraceParent>" in received(client, "copies")
        assert calls.next() == submitted
        _send_by_requests(client, calls, pushes)


def _send_by_requests(client: httpx.Client, calls: Calls, pushes: PushServer) -> None:
    """What a request sends, publishes and invokes belongs to the request's span."""
    subscribe(client, "function", "acs:fc:::services/shop/functions/print")
    client.post("/topics/news/messages", content=MESSAGE, headers=SENT).raise_for_status()
    published = calls.next()
    assert is_below_caller(published)
    assert pushes.next().headers["traceparent"] == published
    assert f"<TraceParent>{published}</TraceParent>" in received(client, "copies")
    client.post(INVOKE, headers=SENT).raise_for_status()
    assert is_below_caller(calls.next())
    destination = {"destinationConfig": {"onSuccess": {"destination": "acs:mns:::/queues/done/messages"}}}
    config = "/2016-08-15/services/shop/functions/print/async-invoke-config"
    client.put(config, json=destination).raise_for_status()
    client.post(INVOKE, headers=SENT | {"X-Fc-Invocation-Type": "Async"}).raise_for_status()
    submitted = calls.next()
    assert is_below_caller(submitted)
    assert f"<TraceParent>{submitted}</TraceParent>" in received(client, "done")
    client.post("/queues/work/messages", content=MESSAGE, headers=SENT).raise_for_status()
    assert f"<TraceParent>00-{CALLER.trace_id:032x}-" in received(client, "work")


def test_without_tracing_nothing_is_kept_and_nothing_is_passed_on(sqlite_url: str) -> None:
    calls = Calls()
    with FunctionServer(calls.answer) as functions, ServerProcess(sqlite_url) as server, client_of(server) as client:
        functions.register(server.url, "shop/print")
        client.put("/queues/work", content="<Queue/>").raise_for_status()
        client.post("/queues/work/messages", content=MESSAGE, headers=SENT).raise_for_status()
        assert "TraceParent" not in received(client, "work")
        client.post(INVOKE, headers=SENT | {"X-Fc-Invocation-Type": "Async"}).raise_for_status()
        assert calls.next() is None
