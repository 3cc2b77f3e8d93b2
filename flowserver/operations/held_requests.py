"""Requests that wait for something: long polls, event streams, waits for an execution's end. Each holds a connection.

One access key may hold a part of them only, so that the others still find a place. A server without keys has one kind
of caller, and only the limits of all together.
"""

from collections import Counter
from types import TracebackType
from typing import Self

from flowserver.base.errors import ResourceThrottled
from flowserver.base.request_context import present_request


class HeldRequests:
    """Counts those of one process, by access key."""

    def __init__(self, per_key_max: int) -> None:
        self._per_key_max = per_key_max
        self._held: Counter[str] = Counter()

    def take(self) -> "HeldPlace":
        """A place for the present request, to be released when it is over; raises ResourceThrottled."""
        place = self.find()
        if place is None:
            raise ResourceThrottled(
                f"{self._per_key_max:,} requests of this access key wait for something on this node; try again later"
            )
        return place

    def find(self) -> "HeldPlace | None":
        """As `take`, but None if the key has no place left."""
        request = present_request()
        key_id = "" if request is None else request.key_id
        if key_id and self._held[key_id] >= self._per_key_max:
            return None
        return HeldPlace(self._held, key_id)


class HeldPlace:
    """A place of a request; the `with` block, or `release`, ends it."""

    def __init__(self, held: Counter[str], key_id: str) -> None:
        self._held = held
        self._key_id = key_id
        held[key_id] += 1

    def release(self) -> None:
        """Give the place back, once."""
        self._held[self._key_id] -= 1
        if not self._held[self._key_id]:
            del self._held[self._key_id]

    def __enter__(self) -> Self:
        """The request waits while the block runs."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """It waits no more."""
        self.release()
