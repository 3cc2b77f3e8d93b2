"""Links between the span of a request and the spans of executions. They do nothing for requests that are not traced."""

from flowserver.base.request_context import present_request
from flowserver.base.span_ids import STARTED, write_traceparent
from flowserver.engine.engine import Engine


def link_to_start(engine: Engine, execution_id: str) -> None:
    """The present request starts this execution: call it before the start, whose span then has the link, too."""
    request = present_request()
    if engine.traces is not None and request is not None and request.span is not None:
        engine.traces.note_starter(execution_id, request.span)
        request.linked_spans = (*request.linked_spans, engine.traces.tracer.ref_of(execution_id, STARTED))


async def link_to_attempt(engine: Engine, execution_id: str, event_id: int) -> None:
    """The present request has ended an attempt, which this event records."""
    request = present_request()
    if engine.traces is not None and request is not None and request.span is not None:
        attempt = await engine.traces.attempt_ended_by(execution_id, event_id)
        if attempt is not None:
            request.linked_spans = (*request.linked_spans, attempt)


def traceparent_of_request() -> str | None:
    """The header for what the present request causes; None if it is not traced."""
    request = present_request()
    return None if request is None or request.span is None else write_traceparent(request.span)
