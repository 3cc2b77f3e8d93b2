"""Ids of traces and spans, and the header `traceparent` (W3C Trace Context). Pure.

An execution is one trace. Its span that event N began has an id of both: the execution itself begins with event 1, and
each attempt of a task with its TaskStarted. A call that is made again after a crash belongs to the same attempt.
"""

import re
from hashlib import blake2b
from typing import Final, NamedTuple

STARTED: Final = 1
"""The id of the event that begins an execution."""

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?\Z")
_VERSION_0_CHARACTERS: Final = 55


class SpanRef(NamedTuple):
    """A span of this server or of a caller."""

    trace_id: int
    span_id: int
    is_sampled: bool = True


def trace_id_of(execution_id: str) -> int:
    """The trace of an execution."""
    return int.from_bytes(blake2b(execution_id.encode("utf-8", "replace"), digest_size=16, person=b"trace").digest())


def span_id_of(execution_id: str, event_id: int) -> int:
    """The span of what this event began."""
    text = f"{execution_id}#{event_id}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(text, digest_size=8, person=b"span").digest())


def write_traceparent(span: SpanRef) -> str:
    """The value of the header that makes this span the parent of what is called."""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.is_sampled):02x}"


def read_traceparent(value: str) -> SpanRef | None:
    """The caller's span; None if the value is not one."""
    match = _TRACEPARENT.match(value)
    if match is None or (value.startswith("00") and len(value) != _VERSION_0_CHARACTERS):
        return None
    trace_id, span_id, flags = (int(text, 16) for text in match.groups())
    return SpanRef(trace_id, span_id, bool(flags & 1)) if trace_id and span_id else None
