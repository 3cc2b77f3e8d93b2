"""Spans of a real server, as a collector on this machine gets them over OTLP."""

import threading

import httpx
import pytest

from tests.support.collector import Collector
from tests.support.function_server import Call, FunctionError, FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

FLOW = """\
version: v1
type: flow
steps:
  - type: task
    name: pay
    resourceArn: acs:fc:::services/shop/functions/pay
    retry: [{errors: [NoMoney], maxAttempts: 1, intervalSeconds: 0}]
"""
SECRET = "hunter2"
"""Is in the registration, the input, an error's cause and the output."""


class Functions:
    """Fails, then hangs until the test goes on, then answers."""

    def __init__(self) -> None:
        self.hangs, self.goes_on = threading.Event(), threading.Event()
        self.traces: list[str] = []

    def answer(self, call: Call) -> object:
        self.traces.append(call.headers["traceparent"])
        if len(self.traces) == 1:
            return FunctionError("NoMoney", SECRET)
        if len(self.traces) == 2:
            self.hangs.set()
            assert self.goes_on.wait(PATIENCE_SECONDS)
        return {"receipt": SECRET}


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_restarted_server_continues_the_trace(sqlite_url: str, processes: str) -> None:
    """Two attempts are two spans; that which a crash has cut keeps its id, and nothing tells what was paid with."""
    functions = Functions()
    with Collector() as collector, FunctionServer(functions.answer) as served:
        options = ("--tracing", "otlp", "--processes", processes)
        with ServerProcess(sqlite_url, *options, environment=collector.environment) as server:
            with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
                function = {"url": f"{served.url}/pay", "headers": {"Authorization": SECRET}}
                client.put("/v1/functions/shop/pay", json=function).raise_for_status()
                client.put("/v1/flows/order", json={"definition": FLOW}).raise_for_status()
                started = {"name": "e", "input": {"card": SECRET}}
                client.post("/v1/flows/order/executions", json=started).raise_for_status()
            assert functions.hangs.wait(PATIENCE_SECONDS)
            collector.wait_for("pay")
            server.kill()
        functions.goes_on.set()
        with ServerProcess(sqlite_url, *options, environment=collector.environment):
            collector.wait_for("end order")
        first, second = collector.wait_for_some("pay", 2)
        root, end = collector.wait_for("start order"), collector.wait_for("end order")
    assert {span.trace_id for span in (first, second, end)} == {root.trace_id}
    assert [first.parent_span_id, second.parent_span_id] == [root.span_id] * 2
    assert first.span_id != second.span_id
    spans = [f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01" for span in (first, second, second)]
    assert functions.traces == spans
    assert first.end_time_unix_nano <= second.start_time_unix_nano < second.end_time_unix_nano
    assert SECRET not in "".join(str(span) for span in collector.spans)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_collector_that_is_away_is_no_harm(sqlite_url: str, processes: str) -> None:
    """Spans are lost, which a metric counts in either process; executions go on, and the server stops in time."""
    with Collector() as gone:
        environment = gone.environment | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    options = ("--tracing", "otlp", "--processes", processes)
    lost = 'flowserver_dropped_spans_total{reason="export"} '
    with (
        ServerProcess(sqlite_url, *options, environment=environment) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        client.post("/", data={"Action": "ListFlows"}).raise_for_status()
        while f"{lost}0.0" in client.get("/metrics").text:
            pass
        assert f"{lost}1.0" in client.get("/metrics").text
        passes = FLOW.split("  - ", maxsplit=1)[0] + "  - {type: pass, name: p}\n"
        client.put("/v1/flows/p", json={"definition": passes}).raise_for_status()
        ended = client.post("/v1/flows/p/executions?wait=60", json={"name": "e"}).raise_for_status().json()
    assert ended["status"] == "Succeeded"
