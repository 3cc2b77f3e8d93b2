"""Requests and answers without I/O: what is sent, when it is repeated, and what an answer means.

A conversation with the server is a generator: it yields a `Request` or a `Pause`, is sent the `Answer` (or has
`Unreachable` thrown in), and returns the result. Both clients run the same conversations.
"""

import random
from collections.abc import Generator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from flowserver.base.json_values import DEPTH_MAX, InvalidJson, dump_json_bytes, load_json
from flowserver.client.errors import ClientError, Refused, Unreachable, Unreadable, refusal

RETRIES: Final = 3
"""Times that a request is repeated, unless the client says otherwise."""

REPLY_SECONDS: Final = 30.0
"""How long an answer may take, beyond the time that the request itself asks the server to wait."""

BACKOFF_SECONDS: Final = 0.2
"""The first pause before a request is repeated; each further one is twice as long."""

PAUSE_SECONDS_MAX: Final = 30.0

ANSWER_DEPTH_MAX: Final = DEPTH_MAX + 8
"""An answer holds documents, each as deep as a document may be."""

REASON_BYTES_MAX: Final = 1_000
"""Of a refusal in plain text no more is shown."""

THROTTLED: Final = 429
UNAVAILABLE: Final = (502, 503, 504)
NO_CONTENT: Final = 204


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `repeatable` if the same request twice has the effect of one.

    `retries` is how often it is repeated at most, if not as often as the client does.
    """

    method: str
    path: str
    query: Mapping[str, str | int | bool | list[str]] = {}
    content: bytes | None = None
    headers: Mapping[str, str] = {}
    repeatable: bool = False
    retries: int | None = None
    patience_seconds: float = REPLY_SECONDS


class Pause(msgspec.Struct, frozen=True):
    """Nothing for so long."""

    seconds: float


class Answer(msgspec.Struct, frozen=True):
    """What came back. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def document(self) -> Any:
        """The JSON value; an empty object if there is no content. Raises Unreadable if it is no JSON."""
        if not self.content:
            return {}
        try:
            return load_json(self.content, ANSWER_DEPTH_MAX)
        except InvalidJson:
            raise Unreadable("what answers is not a flowserver") from None


T = TypeVar("T")

Conversation = Generator[Request | Pause, Answer, T]


def with_retries(conversation: Conversation[T], retries: int) -> Conversation[T]:
    """The same conversation, in which requests that may be repeated are repeated up to `retries` times each."""
    try:
        wanted = next(conversation)
        while True:
            if isinstance(wanted, Pause):
                yield wanted
                wanted = next(conversation)
                continue
            try:
                answer = yield from _sent(wanted, retries)
            except ClientError as error:
                wanted = conversation.throw(error)
            else:
                wanted = conversation.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return] # what the conversation returns


def _sent(request: Request, retries: int) -> Conversation[Answer]:
    """The answer to a request, if it is a success. Raises ClientError.

    What failed is repeated up to `retries` times: if it never left, if the server refused it before changing anything,
    or if it may safely happen twice. A `Retry-After` is waited for.
    """
    failures, was_lost = 0, False
    retries = retries if request.retries is None else request.retries
    while True:
        try:
            answer = yield request
        except Unreachable as error:
            if failures == retries or (error.was_sent and not request.repeatable):
                raise
            wanted, was_lost = 0.0, was_lost or error.was_sent
        else:
            if answer.status < 300:
                return answer
            if failures == retries or not _may_help(request, answer):
                raise _refused(answer, was_lost)
            wanted, was_lost = retry_after_seconds(answer.headers), was_lost or answer.status != THROTTLED
        yield Pause(min(max(wanted, backoff_seconds(failures)), PAUSE_SECONDS_MAX))
        failures += 1


def _may_help(request: Request, answer: Answer) -> bool:
    return answer.status == THROTTLED or (answer.status in UNAVAILABLE and request.repeatable)


def _refused(answer: Answer, was_lost: bool) -> Refused:
    try:
        problem = answer.document
    except Unreadable:
        problem = {"detail": _plain_reason(answer)}
    error = refusal(answer.status, problem if isinstance(problem, dict) else {})
    error.was_repeated = was_lost
    error.retry_after_seconds = retry_after_seconds(answer.headers)
    return error


def _plain_reason(answer: Answer) -> str:
    """What an answer in plain text says: `/metrics` and proxies say so why they refuse."""
    is_plain = answer.headers.get("content-type", "").startswith("text/plain")
    text = answer.content[:REASON_BYTES_MAX].decode(errors="replace") if is_plain else ""
    return " ".join(text.split())


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """How long the server asks to wait before the next request; 0 if it does not."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def backoff_seconds(failures: int) -> float:
    """The pause after so many failures before this one, with a random part, so that clients do not come back at
    once.
    """
    longest = min(BACKOFF_SECONDS * 2.0**failures, PAUSE_SECONDS_MAX)
    return longest * (0.5 + random.random() / 2)  # noqa: S311 - spreads requests, keeps no secret


def json_content(value: object) -> bytes:
    """The body of a request."""
    return dump_json_bytes(value)
