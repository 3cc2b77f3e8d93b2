"""The header `traceparent`, as W3C Trace Context says."""

import pytest

from flowserver.base.span_ids import SpanRef, read_traceparent, span_id_of, trace_id_of, write_traceparent

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
REF = SpanRef(int(TRACE, 16), int(SPAN, 16))


@pytest.mark.parametrize("sampled", [True, False])
def test_what_is_written_is_read(sampled: bool) -> None:
    ref = REF._replace(is_sampled=sampled)
    assert read_traceparent(write_traceparent(ref)) == ref


def test_the_form() -> None:
    assert write_traceparent(REF) == f"00-{TRACE}-{SPAN}-01"


def test_a_later_version_may_have_more() -> None:
    assert read_traceparent(f"cc-{TRACE}-{SPAN}-01-more") == REF


@pytest.mark.parametrize(
    "value",
    [
        "",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_no_span_is_ignored(value: str) -> None:
    assert read_traceparent(value) is None


def test_ids_follow_from_the_execution_and_the_event() -> None:
    assert trace_id_of("e1") == trace_id_of("e1") != trace_id_of("e2")
    spans = {span_id_of(execution, event) for execution in ("e1", "e2") for event in (1, 2)}
    assert len(spans) == 4
    assert max(spans) < 2**64 and trace_id_of("e1") < 2**128
