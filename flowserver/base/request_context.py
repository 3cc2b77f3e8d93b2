"""The request that the present code serves, as the log and the audit show it.

A request is known by its context, which tasks that it starts inherit; a task that outlives it serves no request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Self

from flowserver.base.nonces import Nonce
from flowserver.base.span_ids import SpanRef


class RequestContext:
    """One request. What is not known yet, or of which there is none, is "".

    What is done in its `with` block serves it. A generator's context manager would cost three times as much.
    """

    __slots__ = (
        "_outer",
        *(
            "api",
            "claimed_key_id",
            "execution",
            "flow",
            "has_changed",
            "has_record",
            "is_audited",
            "is_over",
            "key_id",
            "key_label",
        ),
        *("linked_spans", "nonce", "path", "permission", "remote", "request_id", "route", "span"),
    )

    def __init__(self, request_id: str = "", remote: str = "") -> None:
        self.request_id = request_id
        self.remote = remote
        """The address of the peer: of the client, or of the last proxy."""
        self.api = ""
        """REST, RPC, FC or MNS."""
        self.route = ""
        """What the request calls, without names that the client chose."""
        self.path = ""
        """The path of what it calls, with `{…}` for such names."""
        self.key_id = ""
        """The id of the key that the caller has proved to have."""
        self.key_label = ""
        self.claimed_key_id = ""
        """The id of the key with which it says it is signed."""
        self.permission = ""
        """The permission that its caller lacks, or would need for `flow`."""
        self.flow = ""
        """The flow that its caller may not use."""
        self.execution = ""
        """The execution of that flow which the request names."""
        self.has_record = False
        """Whether the audit has a record of an operation that failed."""
        self.is_audited = False
        """Whether an operation of this request is being recorded, of which others may be parts."""
        self.has_changed = False
        """Whether it has submitted a change (`concurrency.load_shedding`)."""
        self.nonce: Nonce | None = None
        """That of its signature, until a change that it has submitted commits it."""
        self.is_over = False
        self.span: SpanRef | None = None
        """Its span; None if nothing is traced."""
        self.linked_spans: tuple[SpanRef, ...] = ()
        """Spans of executions that it has started or continued."""

    def __enter__(self) -> Self:
        """The request is the present one, until its block ends."""
        self._outer = _request.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Tasks that outlive it serve no request."""
        self.is_over = True
        _request.reset(self._outer)


_request: ContextVar[RequestContext | None] = ContextVar("request", default=None)


def present_request() -> RequestContext | None:
    """The request that the present code serves, if it serves one."""
    request = _request.get()
    return None if request is None or request.is_over else request


def set_route(api: str, route: str, path: str = "") -> None:
    """Note what the present request calls; `path` has `{…}` for the names that the client chose."""
    request = _request.get()
    if request is not None:
        request.api, request.route, request.path = api, route, path


def set_execution(name: str | None) -> None:
    """Note which execution the present request names."""
    request = _request.get()
    if request is not None:
        request.execution = name or ""


@contextmanager
def apart_from_request() -> Iterator[None]:
    """What is written inside is no change that the present request makes, such as a note that it has arrived."""
    outer = _request.set(None)
    try:
        yield
    finally:
        _request.reset(outer)
