"""Which requests are refused while too much work waits: those that have changed nothing yet.

The client of a refused request (429) repeats it. So once a request has submitted a change, neither its further reads
nor its further changes are refused: most often the change is committed by then, and its repeat would be a second one.
A request does one thing after the other, so this adds no more waiting work than there are requests.

A request is known by its context, which tasks that it starts inherit. Work outside a request keeps to the bounds even
after a change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class _Request:
    __slots__ = ("has_changed", "is_over")

    def __init__(self) -> None:
        self.has_changed = False
        self.is_over = False  # tasks that outlive it have its context


_request: ContextVar[_Request | None] = ContextVar("request", default=None)


@contextmanager
def one_request() -> Iterator[None]:
    """What is done inside serves one request."""
    request = _Request()
    outer = _request.set(request)
    try:
        yield
    finally:
        request.is_over = True
        _request.reset(outer)


@contextmanager
def apart_from_request() -> Iterator[None]:
    """What is written inside is no change that the present request makes, such as a note that it has arrived."""
    outer = _request.set(None)
    try:
        yield
    finally:
        _request.reset(outer)


def is_refused(*, is_full: bool, is_change: bool = False) -> bool:
    """Whether a caller's work is refused, where as much as may waits if `is_full`. An accepted change is remembered."""
    request = _request.get()
    if request is None or request.is_over:
        return is_full
    if is_full and not request.has_changed:
        return True
    request.has_changed = request.has_changed or is_change
    return False
