"""Gives finished spans to the SDK of OpenTelemetry, which exports them in a thread of its own.

The SDK makes a span's id when it starts the span; here ids and instants are known before. So the spans are made as the
SDK's exporters read them (`ReadableSpan`), and its sampler is asked once for each. What the SDK reads of the
environment counts: OTEL_EXPORTER_OTLP_…, OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from flowserver import __version__
from flowserver.base.span_ids import SpanRef, span_id_of, trace_id_of
from flowserver.tracing.spans import FinishedSpan

log = logging.getLogger(__name__)

_KINDS: Final = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
BATCH_SPANS: Final = 512
"""Spans of one request to the collector."""

CLOSE_SECONDS: Final = 5.0
"""A collector that does not answer delays the end of the server no longer than this."""

_SCOPE: Final = InstrumentationScope("flowserver", __version__)
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_NOT_SAMPLED: Final = TraceFlags(TraceFlags.DEFAULT)


def otlp_tracer(spans_waiting_max: int) -> "SdkTracer":
    """A tracer that exports as OTLP over HTTP."""
    return SdkTracer(OTLPSpanExporter(), spans_waiting_max)


class SdkTracer:
    """A `Tracer` over an exporter of the SDK."""

    def __init__(self, exporter: SpanExporter, spans_waiting_max: int) -> None:
        """Up to `spans_waiting_max` wait for the exporter or are being exported; further ones are dropped."""
        self._waiting_max = spans_waiting_max
        self._counting = _CountingExporter(exporter)
        self._processor = BatchSpanProcessor(
            self._counting,
            max_queue_size=spans_waiting_max,
            max_export_batch_size=min(BATCH_SPANS, spans_waiting_max),
        )
        provider = TracerProvider(shutdown_on_exit=False)
        self._sampler = provider.sampler
        self._resource = _named(provider.resource)
        self._ids = RandomIdGenerator()
        self._taken = 0
        self._refused = 0
        self._lost = 0

    def ref_of(self, execution_id: str, event_id: int) -> SpanRef:
        """The span of what this event of the execution began. The same on every node."""
        trace_id = trace_id_of(execution_id)
        return SpanRef(trace_id, span_id_of(execution_id, event_id), self._samples(trace_id))

    def new_ref(self, parent: SpanRef | None) -> SpanRef:
        """A span of no execution, in the parent's trace or in one of its own."""
        if parent is not None:
            return SpanRef(parent.trace_id, self._ids.generate_span_id(), parent.is_sampled)
        trace_id = self._ids.generate_trace_id()
        return SpanRef(trace_id, self._ids.generate_span_id(), self._samples(trace_id))

    def add(self, span: FinishedSpan) -> None:
        """Have the span exported. It never waits: with a full queue the span is dropped and counted."""
        if not span.ref.is_sampled:
            return
        if self._taken - self._counting.done >= self._waiting_max:
            self._refused += 1
            return
        self._taken += 1
        self._processor.on_end(self._readable(span))

    def lose(self) -> None:
        """Count a span that could not be made."""
        self._lost += 1

    @property
    def dropped(self) -> Mapping[str, int]:
        """Spans that were not exported, by reason."""
        return {"queue": self._refused, "export": self._counting.failed, "history": self._lost}

    def flush(self) -> None:
        """Export what waits, and return when that is done."""
        self._processor.force_flush()

    def close(self) -> None:
        """Export what waits, for at most CLOSE_SECONDS. Blocks."""
        closing = threading.Thread(target=self._processor.shutdown, name="end of tracing", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        left = self._taken - self._counting.done
        if left > 0:
            log.warning("%(spans)d spans were not exported: the collector did not take them in time", {"spans": left})

    def _samples(self, trace_id: int) -> bool:
        return self._sampler.should_sample(None, trace_id, "execution").decision is Decision.RECORD_AND_SAMPLE

    def _readable(self, span: FinishedSpan) -> ReadableSpan:
        attributes = dict(span.attributes)
        if span.error:
            attributes["error.type"] = span.error
        return ReadableSpan(
            span.name,
            context=_context(span.ref),
            parent=None if span.parent is None else _context(span.parent),
            resource=self._resource,
            attributes=attributes,
            links=[Link(_context(ref)) for ref in span.links],
            kind=_KINDS[span.kind],
            status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=_SCOPE,
        )


class _CountingExporter(SpanExporter):
    """Counts, in the thread that exports, the spans that are done with and those that could not be exported."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.done = 0
        self.failed = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch; what the exporter raises, the SDK logs."""
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            self.done += len(spans)
            if result is not SpanExportResult.SUCCESS:
                self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        """End the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits in an exporter."""
        return self._exporter.force_flush(timeout_millis)


def _named(resource: Resource) -> Resource:
    """The resource, with this server's name unless the environment gives one."""
    given = str(resource.attributes.get(SERVICE_NAME, "unknown_service"))
    return resource.merge(Resource({SERVICE_NAME: "flowserver"})) if given.startswith("unknown_service") else resource


def _context(ref: SpanRef) -> SpanContext:
    flags = _SAMPLED if ref.is_sampled else _NOT_SAMPLED
    return SpanContext(ref.trace_id, ref.span_id, is_remote=False, trace_flags=flags)
