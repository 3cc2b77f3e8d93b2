"""Waiting for the end of an execution, also while the server is away."""

import math
import time
from typing import Final

from flowserver.client.errors import ClientError, WaitedTooLong
from flowserver.client.exchanges import REPLY_SECONDS, Conversation, Pause, Request, backoff_seconds
from flowserver.client.outages import OUTAGE_SECONDS, Outage
from flowserver.client.paths import path_of
from flowserver.client.results import Execution, typed

LONG_POLL_SECONDS: Final = 30
"""How long one request of `wait` waits at the server."""

EARLY_PAUSE_SECONDS_MAX: Final = 5.0
"""The longest pause of `wait` after an answer that came early. The first pause is short."""


def wait(
    flow: str, name: str, *, timeout_seconds: float | None = None, outage_seconds: float | None = None
) -> Conversation[Execution]:
    """The execution when it has ended; raises WaitedTooLong if it has not within `timeout_seconds`.

    The server waits for whole seconds, so a time-out may come up to a second later. The server answers at once for a
    parked execution, which may be restarted, and while it stops: then `wait` pauses, and asks again.
    Raises Unreachable once the server has been away for `outage_seconds`: by default until the time-out is over, and
    without one for OUTAGE_SECONDS.
    """
    end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    outage = _outage(outage_seconds, end)
    path = path_of("flows", flow, "executions", name)
    early = 0
    while True:
        asked = time.monotonic()
        rest = LONG_POLL_SECONDS if end is None else max(0, min(LONG_POLL_SECONDS, math.ceil(end - asked)))
        try:
            # Not repeated as it is: less time may be left.
            answer = yield _look(path, rest)
        except ClientError as error:
            yield Pause(outage.pause_seconds(error))
            continue
        outage.over()
        execution = typed(Execution, answer.document)
        if execution.ended:
            return execution
        now = time.monotonic()
        if end is not None and now >= end:
            raise WaitedTooLong(f"{execution.path} still runs after {timeout_seconds} s")
        early = early + 1 if now - asked < rest else 0
        if early:
            pause = min(backoff_seconds(early - 1), EARLY_PAUSE_SECONDS_MAX)
            yield Pause(pause if end is None else min(pause, end - now))


def _outage(seconds: float | None, end: float | None) -> Outage:
    """How long `wait` goes on while the server is away."""
    if end is None:
        return Outage(OUTAGE_SECONDS if seconds is None else seconds)
    return Outage(math.inf if seconds is None else seconds, until=end)


def _look(path: str, wait: int) -> Request:
    patience = REPLY_SECONDS + wait
    query = {"wait": wait} if wait else {}
    return Request(method="GET", path=path, query=query, repeatable=True, retries=0, patience_seconds=patience)
