"""Spans of executions: one trace for each, on all nodes; one span for each committed attempt; nothing secret."""

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from flowserver.base.span_ids import SpanRef, read_traceparent
from flowserver.machine.events import EventType
from flowserver.tracing import otlp
from flowserver.tracing.otlp import SdkTracer
from flowserver.tracing.spans import FinishedSpan
from tests.engine.called_functions import PATIENCE_SECONDS, Call, Functions
from tests.engine.nodes import FragileDatabase, running_node, take_for_dead
from tests.support.clock import ManualClock

PAY = """
- type: task
  name: pay
  resourceArn: acs:fc:::services/shop/functions/pay
  retry: [{errors: [FnF.ALL], intervalSeconds: 1, maxAttempts: 2}]
"""
ASK = """
- type: task
  name: ask
  resourceArn: acs:fc:::services/shop/functions/ask
  pattern: waitForCallback
  inputMappings: [{target: token, source: $context.task.token}]
"""


class Spans:
    """The spans that a tracer has exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer = SdkTracer(self._exporter, 100)

    def named(self, name: str) -> list[ReadableSpan]:
        self.tracer.flush()
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    @property
    def text(self) -> str:
        self.tracer.flush()
        return "".join(span.to_json() for span in self._exporter.get_finished_spans())


class HeldExporter(SpanExporter):
    """Exports nothing until it is released, and then fails."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        assert self.release.wait(PATIENCE_SECONDS)
        return SpanExportResult.FAILURE


@pytest.fixture
def spans() -> Iterator[Spans]:
    exported = Spans()
    yield exported
    exported.tracer.close()


def ref_of(span: ReadableSpan) -> SpanRef:
    context = span.get_span_context()
    assert context is not None
    return SpanRef(context.trace_id, context.span_id)


def parent_of(call: Call) -> SpanRef | None:
    return read_traceparent(call.headers["traceparent"])


async def test_each_attempt_has_a_span_which_its_function_continues(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions, spans: Spans
) -> None:
    async with running_node(open_database(), clock, tracer=spans.tracer) as node:
        await node.register(functions, "shop/pay")
        await node.create_flow("f", PAY)
        await node.start("f", "e")
        first = await functions.next_call("shop/pay")
        clock.advance(seconds=3)
        first.fail("CardDeclined")
        await node.reached("f", "e", EventType.TASK_FAILED)
        node.advance(clock, seconds=1)
        second = await functions.next_call("shop/pay")
        second.reply({"receipt": 1})
        await node.end_of("f", "e")
    failed, paid = spans.named("pay")
    assert [ref_of(failed), ref_of(paid)] == [parent_of(first), parent_of(second)]
    assert failed.start_time is not None and failed.end_time is not None
    assert failed.end_time - failed.start_time == 3_000_000_000
    assert failed.attributes is not None and failed.attributes["error.type"] == "CardDeclined"
    assert (failed.status.status_code, paid.status.status_code) == (StatusCode.ERROR, StatusCode.UNSET)
    (start,), (end,) = spans.named("start f"), spans.named("end f")
    assert failed.parent == paid.parent == end.parent == start.get_span_context()
    assert len({ref_of(span).trace_id for span in (start, failed, paid, end)}) == 1


async def test_another_node_continues_the_trace_after_a_crash(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions, spans: Spans
) -> None:
    database = open_database()
    async with running_node(database, clock, node_id="dies", tracer=spans.tracer) as node:
        await node.register(functions, "shop/pay")
        await node.create_flow("f", PAY)
        await node.start("f", "e")
        lost = await functions.next_call("shop/pay")
        database.crashed = True
    clock.advance(seconds=60)
    other = Spans()
    database = open_database()
    take_for_dead(database, "dies")
    async with running_node(database, clock, node_id="goes-on", tracer=other.tracer) as node:
        again = await functions.next_call("shop/pay")
        again.reply()
        await node.end_of("f", "e")
    assert again.attempt == 2
    assert parent_of(lost) == parent_of(again)  # one attempt of the history, so one span
    (paid,) = other.named("pay")
    assert ref_of(paid) == parent_of(lost)
    assert paid.start_time is not None and paid.end_time is not None
    assert paid.end_time - paid.start_time >= 60_000_000_000  # its beginning is read from the history
    (start,) = spans.named("start f")
    assert paid.parent is not None and paid.parent.span_id == ref_of(start).span_id
    assert spans.named("pay") == []
    other.tracer.close()


async def test_an_attempt_that_waits_is_one_span_from_its_call_to_its_report(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions, spans: Spans
) -> None:
    async with running_node(open_database(), clock, tracer=spans.tracer) as node:
        await node.register(functions, "shop/ask")
        await node.create_flow("f", ASK)
        await node.start("f", "e")
        asked = await functions.next_call("shop/ask")
        asked.reply()
        await node.reached("f", "e", EventType.TASK_SUBMITTED)
        assert spans.named("ask") == []
    async with running_node(open_database(), clock, node_id="next", tracer=spans.tracer) as node:
        clock.advance(seconds=7_200)
        await node.operations.tasks.report_succeeded(asked.event["token"], '{"approved": true}')
        await node.end_of("f", "e")
    (span,) = spans.named("ask")
    assert ref_of(span) == parent_of(asked)
    assert span.start_time is not None and span.end_time is not None
    assert span.end_time - span.start_time == 7_200_000_000_000


async def test_a_sub_flow_is_a_trace_with_a_link_to_the_attempt_that_started_it(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, spans: Spans
) -> None:
    async with running_node(open_database(), clock, tracer=spans.tracer) as node:
        await node.create_flow("child", "- {type: pass, name: p}")
        await node.create_flow("f", "- {type: task, name: sub, resourceArn: 'acs:fnf:::flow/child', pattern: sync}")
        await node.start("f", "e")
        await node.end_of("f", "e")
    (attempt,), (start,) = spans.named("sub"), spans.named("start child")
    assert [link.context for link in start.links] == [attempt.get_span_context()]
    assert ref_of(start).trace_id != ref_of(attempt).trace_id


async def test_spans_hold_no_data_and_no_tokens(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions, spans: Spans
) -> None:
    steps = f"{PAY}  inputMappings: [{{target: card, source: $input.card}}]\n{ASK}"
    async with running_node(open_database(), clock, tracer=spans.tracer) as node:
        await node.register(functions, "shop/pay", "shop/ask")
        await node.create_flow("f", steps)
        await node.start("f", "e", {"card": "4111-input"})
        paid = await functions.next_call("shop/pay")
        assert paid.event == {"card": "4111-input"}
        paid.reply({"receipt": "77-output"})
        asked = await functions.next_call("shop/ask")
        token = asked.event["token"]
        await node.operations.tasks.report_failed(token, "Refused", "because-of-cause")
        await node.end_of("f", "e")
    assert len(spans.named("pay")) == len(spans.named("ask")) == 1
    assert "Refused" in spans.text
    for secret in ("4111-input", "77-output", token, "because-of-cause", functions.url("")):
        assert secret not in spans.text


async def test_spans_that_find_no_place_are_counted(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions
) -> None:
    exporter = HeldExporter()
    tracer = SdkTracer(exporter, 1)
    functions.echo("shop/pay")
    async with running_node(open_database(), clock, tracer=tracer) as node:
        await node.register(functions, "shop/pay")
        await node.create_flow("f", PAY)
        await node.start("f", "e")
        await node.end_of("f", "e")
        assert b'flowserver_dropped_spans_total{reason="queue"} 2.0' in node.engine.metrics.text({})
    exporter.release.set()
    tracer.flush()
    assert tracer.dropped == {"queue": 2, "export": 1, "history": 0}
    tracer.close()


def test_a_collector_that_does_not_answer_holds_up_no_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(otlp, "CLOSE_SECONDS", 0.01)
    exporter = HeldExporter()
    tracer = SdkTracer(exporter, 10)
    ref = tracer.new_ref(None)
    tracer.add(FinishedSpan(name="n", kind="internal", ref=ref, start_ns=0, end_ns=1, attributes={}))
    tracer.close()
    exporter.release.set()
    assert "1 spans were not exported" in caplog.text


async def test_without_a_tracer_functions_get_no_header(
    open_database: Callable[[], FragileDatabase], clock: ManualClock, functions: Functions
) -> None:
    async with running_node(open_database(), clock) as node:
        await node.register(functions, "shop/pay")
        await node.create_flow("f", PAY)
        await node.start("f", "e")
        assert "traceparent" not in (await functions.next_call("shop/pay")).headers
