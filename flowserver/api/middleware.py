"""Wraps requests: an id, a limit on the body, a policy for browsers, an answer even when our code fails, `close` while
the server stops."""

import asyncio
import logging
import re
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn

import uuid_utils
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flowserver.api import access_log, request_span
from flowserver.api.large_bodies import PIECE_BYTES
from flowserver.api.security_headers import DATA_POLICY, POLICY
from flowserver.base.errors import (
    EntityTooLarge,
    FlowServerError,
    InternalServerError,
    InvalidArgument,
    ResourceThrottled,
)
from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.base.request_context import RequestContext
from flowserver.concurrency.background_throttle import BACKGROUND
from flowserver.concurrency.load_shedding import LoadShedding
from flowserver.metrics.request_counts import UNANSWERED, RequestMetrics
from flowserver.tracing.spans import Tracer

if TYPE_CHECKING:
    from flowserver.api.keyless_gate import KeylessGate  # which would load the database for a program of functions

FaultResponse = Callable[[FlowServerError, str], ASGIApp]
"""How a fault is said, under the request's id, to clients of a protocol."""

REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\Z")

NUL_IN_URL = "the URL must not hold the character NUL"  # PostgreSQL cannot store it

TRACER = "tracer"
"""The key of a request's state with what takes its span; without it the request has none."""

log = logging.getLogger(__name__)

READING_METHODS = ("GET", "HEAD")
"""Of requests that change nothing, unless the application says in `scope["state"]["changes"]` whether it does."""

LARGE_BYTES = 262_144
"""An answer of more bytes counts as large."""

TRY_LATER = (429, 503)
RETRY_AFTER = b"1"
"""After how many seconds a client may repeat a request with such an answer, which every API says in a header."""

_POLICY = (POLICY.encode(), DATA_POLICY.encode())

STALLED_SECONDS = 60.0
"""A client that reads nothing of a large answer for this time is cut off: the answer stays in memory meanwhile."""


def fault_body(fault: FlowServerError, request_id: str) -> bytes:
    """A body that the clients of RPC and of REST understand."""
    body = {"RequestId": request_id, "Code": fault.code, "Message": fault.message, "code": fault.code}
    return dump_json(body).encode("utf-8", "replace")


def fault_response(fault: FlowServerError, request_id: str) -> ASGIApp:
    """That body as an answer, which ends the connection."""
    body = fault_body(fault, request_id)
    return Response(body, fault.status, headers={"Connection": "close"}, media_type="application/json")


def is_request_id(text: str) -> bool:
    """Whether a client may call its request so, in answers, headers and the log."""
    return REQUEST_ID.match(text) is not None


class LargeAnswers:
    """Counts the large answers of a process that are under way: each is in memory until its client has read it."""

    def __init__(self, places: float) -> None:
        """`places` is how many there may be; `math.inf` for answers that share one body, which need no places."""
        self._places = places
        self._taken = 0
        self._shedding = LoadShedding()

    def begin(self, *, changed: bool) -> str:
        """Take a place for the present request; raises ResourceThrottled if all are taken, or the share of its key.

        The answer to a request that has changed something is not refused: the client would repeat the change. Returns
        what `end` needs.
        """
        try:
            key = self._shedding.accept(self._taken, self._places, is_sure=changed)
        except ResourceThrottled:
            message = "too many large answers are being sent; try again later, or ask for smaller pages"
            raise ResourceThrottled(message) from None
        self._taken += 1
        return key

    def end(self, key: str) -> None:
        """Give the place back."""
        self._taken -= 1
        if key:
            self._shedding.ended(key)


class AnswerStalled(Exception):
    """The client of a large answer has stopped reading it."""


class RequestFrame:
    """ASGI middleware: sets `request.state.request_id`, refuses long bodies, turns our bugs into a plain 500.

    With a `gate` it refuses, before it reads a body, what others forward to a server without access keys.
    It refuses the character NUL in a URL, too, unless the application says itself which parameter holds it.
    """

    def __init__(
        self,
        app: ASGIApp,
        body_bytes_max: int,
        is_leaving: Callable[[], bool],
        large_answers: LargeAnswers | None = None,
        fault_response: FaultResponse = fault_response,
        *,
        gate: "KeylessGate | None" = None,
        refuses_nul: bool = True,
        metrics: RequestMetrics | None = None,
    ) -> None:
        self._metrics = metrics or RequestMetrics()
        self._gate = gate
        self._refuses_nul = refuses_nul
        self._app = app
        self._fault_response = fault_response
        self._body_bytes_max = body_bytes_max
        self.is_leaving = is_leaving
        self.large_answers = large_answers or LargeAnswers(Limits().large_answers_max)
        self.stalled_seconds = STALLED_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = str(uuid_utils.uuid4())
        client = scope.get("client")
        scope.setdefault("state", {})["request_id"] = request_id
        answer = _Answer(send, scope, self)
        with RequestContext(request_id, "" if client is None else client[0]) as request:
            tracer: Tracer | None = scope["state"].get(TRACER)
            caller = None if tracer is None else request_span.begin(tracer, request, scope)
            began_at = perf_counter()
            try:
                await self._serve(scope, receive, answer, request_id)
            finally:
                seconds = perf_counter() - began_at
                route = request.route or access_log.endpoint_of(scope)
                self._metrics.count(request.api, route, answer.status, seconds)
                if tracer is not None:
                    request_span.end(tracer, request, caller, scope, route=route, status=answer.status, seconds=seconds)
                if access_log.is_on():
                    access_log.write(scope["method"], route or request.api, answer.status, seconds, answer.bytes_sent)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer", request_id: str) -> None:
        body = _BoundedBody(receive, self._body_bytes_max, asked_for_bytes=_asked_for_bytes(scope))
        try:
            refusal = await self._gate.refusal(scope) if self._gate is not None else None
            if refusal is not None:
                answer.keeps_connection = _asked_for_bytes(scope) == 0  # else its client might see it break, not why
                await self._fault_response(refusal, request_id)(scope, receive, answer.send)
                return
            if self._refuses_nul and ("\0" in scope["path"] or b"%00" in scope["query_string"]):
                await self._fault_response(InvalidArgument(NUL_IN_URL), request_id)(scope, receive, answer.send)
                return
            await self._app(scope, body.receive, answer.send)
        except AnswerStalled:
            log.warning("a client has not read its answer for %d s: it is cut off", self.stalled_seconds)
        except ResourceThrottled as error:
            if answer.begun:
                raise
            await self._fault_response(error, scope["state"]["request_id"])(scope, receive, answer.send)
        except Exception as error:
            request_id = scope["state"]["request_id"]
            if not body.too_large:
                log.exception("request %(request_id)s failed", {"request_id": request_id})
            if not answer.begun:
                fault = EntityTooLarge(_too_large(self._body_bytes_max)) if body.too_large else InternalServerError()
                await self._fault_response(fault, request_id)(scope, receive, answer.send)
            elif not body.too_large:
                raise error
        finally:
            answer.end()


def _asked_for_bytes(scope: Scope) -> int:
    """The size of the body that the client asks to send, with `Expect: 100-continue`; 0 if it does not ask.

    A client that does not ask is sending it already, and may not read an answer before the body is sent.
    """
    headers = dict(scope["headers"])
    return int(headers.get(b"content-length", 0)) if b"expect" in headers else 0


def _length_of(start: Message) -> int:
    """The length of the body that a response's start announces; 0 if it does not."""
    for name, value in start.get("headers", ()):
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _too_large(body_bytes_max: int) -> str:
    return f"the request body is larger than {body_bytes_max} bytes"


class _Answer:
    def __init__(self, send: Send, scope: Scope, frame: "RequestFrame") -> None:
        self._send = send
        self._frame = frame
        self._state = scope["state"]
        self._is_change = scope["method"] not in READING_METHODS
        self._is_large = False
        self._counted = ""
        self.begun = False
        self.status: int | str = UNANSWERED
        self.bytes_sent = 0
        self._sent_in_turn = 0
        """Bytes of the body since others had their turn."""
        self.keeps_connection = False
        """Whether an answer that would close the connection leaves it to the client."""

    async def send(self, message: Message) -> None:
        """Send a message; a large body goes in pieces, and its next piece when the client has read the ones before."""
        if message["type"] == "http.response.start":
            if _length_of(message) > LARGE_BYTES:
                self._counted = self._frame.large_answers.begin(changed=self._state.get("changes", self._is_change))
                self._is_large = True
            self.begun = True
            self.status = message["status"]
            request_id = self._state["request_id"].encode()  # the client's own, if it has named one
            headers = [*message.get("headers", ()), (b"x-request-id", request_id)]
            names = {name.lower() for name, _ in headers}
            if _POLICY[0] not in names:
                headers.append(_POLICY)
            if message["status"] in TRY_LATER and b"retry-after" not in names:
                headers.append((b"retry-after", RETRY_AFTER))
            is_leaving = self._frame.is_leaving()
            if is_leaving or self.keeps_connection:
                headers = [(name, value) for name, value in headers if name != b"connection"]
            if is_leaving:  # so that no further request meets a closing connection
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        elif self._is_large or len(message.get("body", b"")) > PIECE_BYTES:
            await self._send_in_pieces(message)
            return
        await self._send(message)
        size = len(message.get("body", b""))
        self.bytes_sent += size
        self._sent_in_turn += size
        if self._sent_in_turn > PIECE_BYTES:  # a stream of small pieces
            self._sent_in_turn = 0
            await BACKGROUND.turns.take()

    def end(self) -> None:
        """The request has been served or given up."""
        if self._is_large:
            self._is_large = False
            self._frame.large_answers.end(self._counted)

    async def _send_in_pieces(self, message: Message) -> None:
        body = memoryview(message["body"])
        for start in range(0, max(1, len(body)), PIECE_BYTES):
            is_last = start + PIECE_BYTES >= len(body)
            piece: Message = {**message, "body": bytes(body[start : start + PIECE_BYTES])}
            piece["more_body"] = message.get("more_body", False) or not is_last
            await BACKGROUND.turns.take()  # also when the client reads as fast as this writes
            try:
                async with asyncio.timeout(self._frame.stalled_seconds):
                    await self._send(piece)
                self.bytes_sent += len(piece["body"])
            except TimeoutError:
                raise AnswerStalled from None


class _BoundedBody:
    def __init__(self, receive: Receive, bytes_max: int, asked_for_bytes: int) -> None:
        self._receive = receive
        self._asked_for_bytes = asked_for_bytes
        self._bytes_left = bytes_max
        self._bytes_max = bytes_max
        self.too_large = False

    async def receive(self) -> Message:
        if self._asked_for_bytes > self._bytes_max:
            self._refuse()  # receiving would tell the client to go ahead
        message = await self._receive()
        if message["type"] == "http.request":
            self._bytes_left -= len(message.get("body", b""))
            if self._bytes_left < 0:
                self._refuse()
        return message

    def _refuse(self) -> NoReturn:
        self.too_large = True
        raise EntityTooLarge(_too_large(self._bytes_max))
