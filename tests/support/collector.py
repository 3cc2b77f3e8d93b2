"""An OpenTelemetry collector for a real server process: it takes OTLP over HTTP and remembers the spans.

with Collector() as collector, ServerProcess(url, "--tracing", "otlp", environment=collector.environment):
    span = collector.wait_for("start f")
"""

import threading
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.threading_server import ThreadingServer

PATIENCE_SECONDS = 60


class Collector:
    """`spans` are those so far, `services` the names of their senders."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self._news = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                collector._take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingServer(Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.url = self._server.url
        self.environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_EXPORTER_OTLP_TIMEOUT": "60",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
        }
        """Variables of a server that exports to this one."""

    def wait_for(self, name: str) -> Span:
        """The first span of this name, once it has arrived."""
        return self.wait_for_some(name, 1)[0]

    def wait_for_some(self, name: str, count: int) -> list[Span]:
        """The spans of this name, once so many have arrived."""
        with self._news:
            has_come = self._news.wait_for(lambda: len(self._named(name)) >= count, PATIENCE_SECONDS)
            assert has_come, [span.name for span in self.spans]
            return self._named(name)

    def _named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def _take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._news:
            for resource in request.resource_spans:
                names = {each.key: each.value.string_value for each in resource.resource.attributes}
                self.services.add(names["service.name"])
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
            self._news.notify_all()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
