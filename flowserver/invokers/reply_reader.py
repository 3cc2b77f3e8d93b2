"""The replies of one connection, out of its bytes. Pure: no I/O, no clock.

llhttp parses, the parser of Node, by way of httptools. This module decides what a reply is: how large it may be, how
many interim replies come before it, where it ends, and whether another may follow on the same connection. It is as
strict as llhttp is by itself, except for lines that end without CR, and blanks after the size of a chunk: some servers
send these. Everything that a function can send without end has a bound.

aiohttp's parser with its messages, streams and queues took a third of the processor time of a whole call.
"""

from typing import Final

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Reply

FIELD_BYTES: Final = 32
"""What a field costs of `function_response_head_bytes_max` besides its name and value, as HTTP/2 counts it."""

FRAMING_FACTOR: Final = 8
"""Besides that limit, so many bytes may come for each byte of a body: chunks of one byte have 5 around it."""


PIECE_BYTES: Final = 65_536
SMALL_BYTES: Final = 4_096
"""Parts of a body that are smaller than this are joined to pieces of the former size."""


class NoReply(Exception):
    """The connection brought no whole reply."""


class ConnectionEnded(NoReply):
    """The connection ended before the reply was whole."""


class InvalidReply(NoReply):
    """What came is not HTTP, or exceeds `function_response_head_bytes_max`."""


class ReplyTooLarge(Exception):
    """The body has more bytes than allowed; the rest is not read."""


class TooManyInterimReplies(Exception):
    """More 1xx replies came than one call may have."""


class ReplyReader:
    """Reads one reply after each `expect`. After an exception the connection must be closed."""

    def __init__(self, limits: Limits) -> None:
        self.can_go_on = True
        """Whether another reply may follow on the connection."""
        self._head_bytes_max = limits.function_response_head_bytes_max
        self._interim_replies_max = limits.interim_replies_max
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)
        self._fields: list[tuple[str, str]] = []
        self._headers: CIMultiDict[str] | None = None
        """Those of the reply itself, not of an interim one."""
        self._pieces: list[bytes | bytearray] = []
        """Of the body. One large array would be moved, and its memory be asked of the system, again and again."""
        self._reply: Reply | None = None
        self.expect(0)
        self._is_expecting = False

    def expect(self, bytes_max: int) -> None:
        """A request is sent now. The body of its reply may have so many bytes."""
        self._is_expecting = True
        self._bytes_max = bytes_max
        self._received = self._head_bytes = self._body_bytes = self._interim_replies = 0

    @property
    def has_begun(self) -> bool:
        """Whether anything of the last reply has come."""
        return self._received > 0

    @property
    def body_bytes(self) -> int:
        """How much of the body has come."""
        return self._body_bytes

    def drop(self) -> None:
        """No reply will be read any more: do not keep what has come until the garbage collector finds it."""
        self._pieces.clear()

    def feed(self, data: bytes) -> Reply | None:
        """The reply, once it is whole. Raises InvalidReply, ReplyTooLarge or TooManyInterimReplies."""
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:  # another protocol follows the reply, which is a 101
            self.can_go_on = False
        except HttpParserError as error:
            self.can_go_on = False
            if self._reply is None:  # otherwise the error is in what follows the reply
                raise _cause_of(error) from None
        if self._reply is None:
            if self._received > self._head_bytes_max + (1 + FRAMING_FACTOR) * self._body_bytes:
                raise InvalidReply
            return None
        reply, self._reply = self._reply, None
        return reply

    def end(self) -> Reply:
        """The connection has ended in order, which completes a reply without any length. Raises ConnectionEnded."""
        self.can_go_on = False
        if not self._is_expecting or self._headers is None or _has_length(self._headers):
            raise ConnectionEnded
        self.on_message_complete()
        assert self._reply is not None
        return self._reply

    # What the parser calls

    def on_message_begin(self) -> None:
        """A reply or an interim reply begins."""
        if not self._is_expecting:
            raise InvalidReply

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of a head, or of the trailers, which are not kept."""
        self._head_bytes += len(name) + len(value) + FIELD_BYTES
        if self._head_bytes > self._head_bytes_max:
            raise InvalidReply
        if self._headers is None:
            self._fields.append((name.decode("ascii"), value.rstrip(b" \t").decode("utf-8", "surrogateescape")))

    def on_headers_complete(self) -> None:
        """A head is complete."""
        fields, self._fields = self._fields, []
        status = self._parser.get_status_code()
        if status < 200 and status != 101:  # it announces that the reply will come
            self._interim_replies += 1
            if self._interim_replies > self._interim_replies_max:
                raise TooManyInterimReplies
            return
        self._headers = CIMultiDict(fields)
        if int(self._headers.get("Content-Length", 0)) > self._bytes_max:
            raise ReplyTooLarge

    def on_body(self, part: bytes) -> None:
        """A part of the body."""
        self._body_bytes += len(part)
        if self._body_bytes > self._bytes_max:
            raise ReplyTooLarge
        last = self._pieces[-1] if self._pieces else b""
        if isinstance(last, bytearray) and len(last) < PIECE_BYTES:
            last += part
        elif self._pieces and len(part) < SMALL_BYTES:
            self._pieces.append(bytearray(part))
        else:
            self._pieces.append(part)

    def on_message_complete(self) -> None:
        """A reply or an interim reply is complete."""
        if self._headers is None:
            return
        body = b"".join(self._pieces)  # copies nothing if it came in one piece, as nearly always
        self._pieces.clear()
        self._reply = Reply(self._parser.get_status_code(), self._headers, body)
        self._headers = None
        self._is_expecting = False
        self.can_go_on = self.can_go_on and self._parser.should_keep_alive()


def _cause_of(error: HttpParserError) -> BaseException:
    """What a callback has raised; otherwise llhttp found no HTTP."""
    return (error.__context__ if isinstance(error, HttpParserCallbackError) else None) or InvalidReply()


def _has_length(headers: CIMultiDict[str]) -> bool:
    """Whether the head says where the body ends, so that the end of the connection does not."""
    codings = ",".join(headers.getall("Transfer-Encoding", ()))
    return "Content-Length" in headers or "chunked" in codings.lower()
