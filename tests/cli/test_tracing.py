"""A server process that exports its spans over OTLP: the setting, requests, links, and a crash."""

import sys

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from flowserver.base.span_ids import SpanRef, read_traceparent, write_traceparent
from flowserver.cli.failures import CommandFailed
from flowserver.cli.local_failures import failure_of
from flowserver.settings import Settings
from flowserver.tracing.spans import TracingUnavailable, tracer_maker
from tests.support.collector import Collector
from tests.support.function_server import FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

ASK = """
version: v1
type: flow
steps:
  - type: task
    name: ask
    resourceArn: acs:fc:::services/shop/functions/ask
    pattern: waitForCallback
    inputMappings: [{target: token, source: $context.task.token}]
"""
CALLER = SpanRef(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)


def client_of(server: ServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS)


def bytes_of(ref: SpanRef) -> tuple[bytes, bytes]:
    return ref.trace_id.to_bytes(16), ref.span_id.to_bytes(8)


def test_a_trace_goes_on_after_a_crash_and_requests_are_linked_to_it(sqlite_url: str) -> None:
    with Collector() as collector, FunctionServer() as functions:
        tracing = ("--tracing", "otlp")
        server = ServerProcess(sqlite_url, *tracing, environment=collector.environment)
        try:
            with client_of(server) as client:
                functions.register(server.url, "shop/ask")
                client.post("/v1/flows", json={"name": "f", "definition": ASK}).raise_for_status()
                headers = {"traceparent": write_traceparent(CALLER)}
                client.post("/v1/flows/f/executions", json={"name": "e"}, headers=headers).raise_for_status()
                query = {"Action": "DescribeFlow", "Version": "2019-03-15", "Name": "hidden-query"}
                assert client.get("/", params=query).json()["Code"] == "FlowNotExists"
            start = collector.wait_for("start f")
            started = collector.wait_for("POST /v1/flows/{flow}/executions")
            collector.wait_for("RPC DescribeFlow")
            client_events(server, "TaskSubmitted")
        finally:
            server.kill()
        (asked,) = functions.calls
        with ServerProcess(sqlite_url, *tracing, environment=collector.environment) as server:
            with client_of(server) as client:
                report = {"taskToken": asked.event["token"], "output": {"answer": "hidden-output"}}
                client.post("/v1/tasks/succeed", json=report).raise_for_status()
            server.stop()  # which exports what waits
        ask, end = collector.wait_for("ask"), collector.wait_for("end f")
    assert ask.trace_id == end.trace_id == start.trace_id
    sent = read_traceparent(asked.headers["traceparent"])
    assert sent is not None and (ask.trace_id, ask.span_id) == bytes_of(sent)
    assert ask.parent_span_id == end.parent_span_id == start.span_id
    # The request that started it is in its caller's trace, and both have a link to the other.
    assert started.trace_id == CALLER.trace_id.to_bytes(16)
    assert started.parent_span_id == CALLER.span_id.to_bytes(8)
    assert [link.span_id for link in started.links] == [start.span_id]
    assert [(link.trace_id, link.span_id) for link in start.links] == [(started.trace_id, started.span_id)]
    reports = [span for span in collector.spans if [link.span_id for link in span.links] == [ask.span_id]]
    assert len(reports) == 1 and reports[0].trace_id != ask.trace_id
    assert collector.services == {"flowserver"}
    text = "".join(str(span) for span in collector.spans)
    for hidden in ("hidden-query", "hidden-output", asked.event["token"], "/v1/flows/f"):
        assert hidden not in text


def attributes_of(span: Span) -> dict[str, str | int]:
    """Without the id of the request."""
    found = {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
    assert found.pop("flowserver.request_id")
    return found


@pytest.mark.parametrize("processes", ["1", "2"])
def test_requests_are_described_by_the_conventions_for_http_servers(sqlite_url: str, processes: str) -> None:
    both = {"url.scheme": "http", "network.protocol.version": "1.1", "network.peer.address": "127.0.0.1"}
    fc = "/2016-08-15/services/{service}/functions/{function}/stateful-async-invocations"
    wanted = {
        "GET /v1/flows/{flow}": ("GET", "/v1/flows/hidden", "REST", "get_flow", "/v1/flows/{flow}", 404),
        "RPC ListFlows": ("POST", "/?Action=ListFlows", "RPC", "ListFlows", "/", 200),
        f"GET {fc}": ("GET", fc.replace("{service}", "a.b").format(function="c"), "FC", "list_invocations", fc, 200),
        "PUT /queues/{name}": ("PUT", "/queues/hidden", "MNS", "create_queue", "/queues/{name}", 201),
    }
    flags = ("--processes", processes, "--tracing", "otlp")
    with Collector() as collector:
        with (
            ServerProcess(sqlite_url, *flags, environment=collector.environment) as server,
            client_of(server) as client,
        ):
            for method, path, *_ in wanted.values():
                client.request(method, path, headers={"User-Agent": "hidden"}, content="<Queue/>")
            client.get("/v1/nothing/hidden")
        for name, (method, _, api, route, path, status) in wanted.items():
            span = collector.wait_for(name)
            assert span.kind == Span.SPAN_KIND_SERVER
            of_server = {"flowserver.api": api, "flowserver.route": route, "http.route": path}
            of_http = {"http.request.method": method, "http.response.status_code": status}
            assert attributes_of(span) == both | of_server | of_http
        assert "hidden" not in "".join(str(span) for span in collector.spans)


def test_two_processes_link_requests_as_one_does(sqlite_url: str) -> None:
    with Collector() as collector, FunctionServer() as functions:
        two = ("--processes", "2", "--tracing", "otlp")
        with ServerProcess(sqlite_url, *two, environment=collector.environment) as server, client_of(server) as client:
            functions.register(server.url, "shop/ask")
            client.post("/v1/flows", json={"name": "f", "definition": ASK}).raise_for_status()
            start = {"Action": "StartExecution", "Version": "2019-03-15", "FlowName": "f", "ExecutionName": "e"}
            headers = {"traceparent": write_traceparent(CALLER)}
            client.post("/", data=start, headers=headers).raise_for_status()
            client_events(server, "TaskSubmitted")
            token = functions.calls[0].event["token"]
            report = {"Action": "ReportTaskSucceeded", "Version": "2019-03-15", "TaskToken": token, "Output": "{}"}
            client.post("/", data=report).raise_for_status()
        started, reported = collector.wait_for("RPC StartExecution"), collector.wait_for("RPC ReportTaskSucceeded")
        start, ask = collector.wait_for("start f"), collector.wait_for("ask")
    assert (started.trace_id, started.parent_span_id) == bytes_of(CALLER)
    assert [link.span_id for link in started.links] == [start.span_id]
    assert [link.span_id for link in start.links] == [started.span_id]
    assert [link.span_id for link in reported.links] == [ask.span_id]


def client_events(server: ServerProcess, wanted: str) -> None:
    """Return when the history has an event of this type."""
    with client_of(server) as client, client.stream("GET", "/v1/flows/f/executions/e/events/stream") as answer:
        assert any(wanted in line for line in answer.iter_lines())


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "flowserver.tracing.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TracingUnavailable, match=r"pip install 'flowserver\[otel\]'") as caught:
        tracer_maker("otlp")
    assert isinstance(failure_of(caught.value), CommandFailed)
    assert tracer_maker("off")(1) is None


def test_off_without_quotes_in_the_file(tmp_path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("tracing: off\n")
    assert Settings(settings=file).tracing == "off"
