"""What counts as a reply, in bytes: how it ends, what is refused, and that nothing of it reaches the next one."""

import pytest

from flowserver.base.limits import Limits
from flowserver.invokers.reply_reader import (
    FIELD_BYTES,
    ConnectionEnded,
    InvalidReply,
    ReplyReader,
    ReplyTooLarge,
    TooManyInterimReplies,
)
from tests.invokers.wire_server import head

HEAD_BYTES_MAX = Limits().function_response_head_bytes_max

LENGTH = head(200, "Content-Length: 8", "X-Fc-Request-Id: a \t") + b'{"a": 1}'
CHUNKS = head(200, "transfer-encoding: chunked") + b'3;x=y\r\n{"a\r\n5 \r\n": 1}\r\n0\r\nx-late: 1\r\n\r\n'
ANNOUNCED = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 3 + LENGTH
BARE_LINES = LENGTH.replace(b"\r\n", b"\n")
EMPTY = head(204)
UNCHANGED = head(304, "content-length: 8")
WHOLE = [LENGTH, CHUNKS, ANNOUNCED, BARE_LINES, EMPTY, UNCHANGED]


def reader(bytes_max=1_000, interim_replies_max=10):
    made = ReplyReader(Limits(interim_replies_max=interim_replies_max))
    made.expect(bytes_max)
    return made


def fed(*parts, **limits):
    """The reply to the first request, from these parts."""
    made = reader(**limits)
    *first, last = [made.feed(part) for part in parts]
    assert not any(first)
    return last


@pytest.mark.parametrize("received", WHOLE)
def test_a_reply_is_the_same_however_its_bytes_arrive(received):
    whole = fed(received)
    assert whole.body == (b'{"a": 1}' if whole.status == 200 else b"")
    assert fed(*(received[at : at + 1] for at in range(len(received)))) == whole
    for at in range(1, len(received)):
        assert fed(received[:at], received[at:]) == whole


def test_headers_are_found_in_any_case_and_are_those_of_the_reply_alone():
    headers = fed(ANNOUNCED).headers
    assert (headers["x-fc-request-id"], headers["CONTENT-LENGTH"], len(headers)) == ("a", "8", 2)
    assert dict(fed(CHUNKS).headers) == {"transfer-encoding": "chunked"}
    assert fed(head(204, "x-name: 值")).headers["x-name"] == "值"


@pytest.mark.parametrize("second", WHOLE)
@pytest.mark.parametrize("first", WHOLE)
def test_a_reply_leaves_nothing_to_the_next(first, second):
    made = reader()
    assert made.feed(first)
    assert made.can_go_on
    made.expect(1_000)
    assert not made.has_begun
    assert made.feed(second) == fed(second)


@pytest.mark.parametrize(
    "extra", [LENGTH, b"H", b"x", b"\0", b"HTTP/1.1 100 Continue\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"0\r\n\r\n"]
)
@pytest.mark.parametrize("received", WHOLE)
def test_nothing_may_follow_a_reply(received, extra):
    made = reader()
    assert made.feed(received + extra) == fed(received)
    assert not made.can_go_on


def test_nothing_may_come_before_a_request():
    with pytest.raises(InvalidReply):
        ReplyReader(Limits()).feed(LENGTH)


@pytest.mark.parametrize(
    "last",
    [
        head(200, "content-length: 2", "connection: close") + b"{}",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        head(101, "connection: upgrade", "upgrade: websocket"),
        head(101, "connection: upgrade", "upgrade: websocket") + b"\x81\x05hello",
    ],
)
def test_a_reply_may_be_the_last_of_its_connection(last):
    made = reader()
    assert made.feed(last) is not None
    assert not made.can_go_on


@pytest.mark.parametrize(
    "received",
    [
        head(200, "content-length: 8", "transfer-encoding: chunked") + b'8\r\n{"a": 1}\r\n0\r\n\r\n',
        head(200, "transfer-encoding: chunked", "content-length: 8") + b'{"a": 1}',
        head(200, "content-length: 8", "content-length: 9") + b'{"a": 1}',
        head(200, "content-length: 8, 8") + b'{"a": 1}',
        head(200, "content-length: -8") + b'{"a": 1}',
        head(200, "content-length: +8") + b'{"a": 1}',
        head(200, "content-length: 0x8") + b'{"a": 1}',
        head(200, "content-length: 8 8") + b'{"a": 1}',
        head(200, "content-length: 99999999999999999999999999") + b'{"a": 1}',
        head(200, "content-length : 8") + b'{"a": 1}',
        head(200, "transfer-encoding: chunked") + b"-1\r\n",
        head(200, "transfer-encoding: chunked") + b"0x1\r\n",
        head(200, "transfer-encoding: chunked") + b"fffffffffffffffff\r\n",
        head(200, "transfer-encoding: chunked") + b"2\r\n{}0\r\n\r\n",
        head(200, "transfer-encoding: chunked") + b"\r\n",
        head(200, "x: a\0b"),
        head(200, "x: a\rb: c"),
        head(200, "x: a", " folded: b"),
        head(200, " x: a"),
        head(200, "x y: a"),
        head(200, "no colon"),
        b"HTTP/3.0 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"{}",
    ],
)
def test_what_is_ambiguous_or_no_http_is_refused(received):
    made = reader()
    with pytest.raises(InvalidReply):
        made.feed(received)
    assert not made.can_go_on


BEGUN = b"HTTP/1.1 200 OK\r\n"
CHUNKED = head(200, "transfer-encoding: chunked")


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (b"HTTP/1.1 200 ", b"x"),
        (BEGUN, b"x"),
        (BEGUN + b"x: ", b"y"),
        (BEGUN + b"x:", b" "),
        (BEGUN, b"x: y\r\n"),
        (CHUNKED, b"0"),
        (CHUNKED + b"1;x=", b"y"),
        (CHUNKED + b"0\r\nx: ", b"y"),
        (CHUNKED + b"0\r\n", b"x: y\r\n"),
        (b"", b"\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n"),
    ],
)
@pytest.mark.parametrize("piece", [512, 262_144])
def test_nothing_comes_without_end(begun, more, piece):
    made = reader(interim_replies_max=1_000_000)
    pieces = (more * piece)[:piece]
    with pytest.raises(InvalidReply):
        for number in range(2 * HEAD_BYTES_MAX // piece + 2):
            assert made.feed((b"" if number else begun) + pieces) is None
    assert made._received <= HEAD_BYTES_MAX + max(piece, 2_000)


def test_the_largest_head():
    values = "x" * (HEAD_BYTES_MAX - len("nothing: ") - 2 * FIELD_BYTES)
    assert fed(head(204, f"y: {values[:-2]}")).headers["y"]
    fields = [f"n{number:05}: {number:05}" for number in range(HEAD_BYTES_MAX // (11 + FIELD_BYTES))]
    assert len(fed(head(204, *fields)).headers) == len(fields)
    with pytest.raises(InvalidReply):
        fed(head(204, *fields, "n: 1"))


def test_the_largest_body():
    for received in (LENGTH, CHUNKS, ANNOUNCED):
        assert fed(received, bytes_max=8).body == b'{"a": 1}'
        with pytest.raises(ReplyTooLarge):
            fed(received, bytes_max=7)
    with pytest.raises(ReplyTooLarge):
        fed(head(200) + b"x" * 8, bytes_max=7)
    with pytest.raises(ReplyTooLarge):
        fed(head(200, "content-length: 9"), bytes_max=8)


def test_a_body_of_many_small_chunks():
    size = 4 * HEAD_BYTES_MAX
    received = head(200, "transfer-encoding: chunked") + b"1\r\nx\r\n" * size + b"0\r\n\r\n"
    parts = [received[at : at + 6_000] for at in range(0, len(received), 6_000)]
    assert fed(*parts, bytes_max=size).body == b"x" * size


def test_interim_replies_are_counted_for_each_call():
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    made = reader(interim_replies_max=2)
    for _ in range(3):
        assert made.feed(2 * interim + LENGTH)
        made.expect(1_000)
    with pytest.raises(TooManyInterimReplies):
        made.feed(3 * interim)
    assert not made.can_go_on


@pytest.mark.parametrize("lines", [[], ["transfer-encoding: gzip"], ["connection: close"]])
def test_a_body_without_a_length_ends_with_the_connection(lines):
    made = reader()
    assert made.feed(head(200, *lines) + b'{"a":') is None
    assert made.feed(b" 1}") is None
    reply = made.end()
    assert (reply.status, reply.body) == (200, b'{"a": 1}')
    assert not made.can_go_on


@pytest.mark.parametrize(
    "received",
    [
        b"",
        b"H",
        head(200)[:-2],
        head(103),
        LENGTH[:-1],
        LENGTH[:-1].replace(b"X-Fc", b"Connection: close\r\nX-Fc"),
        CHUNKS[:-1],
        head(200, "transfer-encoding: gzip, chunked") + b"2\r\n{}\r\n",
        head(200, "transfer-encoding: chunked, gzip") + b"2\r\n{}\r\n",
        head(200, "transfer-encoding: chunked", "transfer-encoding: gzip") + b"{}",
    ],
)
def test_a_reply_cut_short_is_none(received):
    made = reader()
    assert made.feed(received) is None
    with pytest.raises(ConnectionEnded):
        made.end()
    assert made.has_begun is bool(received)


def test_the_end_of_an_idle_connection_is_no_reply():
    made = reader()
    assert made.feed(LENGTH)
    with pytest.raises(ConnectionEnded):
        made.end()
