"""Which requests are refused while too much work waits: those that have changed nothing yet, and first those of the
access key that has most of it waiting.

The client of a refused request (429) repeats it. So once a request has submitted a change, neither its further reads
nor its further changes are refused: most often the change is committed by then, and its repeat would be a second one.
A request does one thing after the other, so this adds no more waiting work than there are requests.

A place where work waits has a bound for all keys together, and near it each key has a fair share, by the rule of
`keyed_semaphore`: a key is refused once it would have more than KEY_SHARE times as much waiting as there is room left.
So one key that floods gets five sixths, two get four ninths each, and a key that asks for little still gets in. A
sixteenth of the room is only for keys with nothing waiting, however many flood. Callers without a key, on a server that
is open, are all alike, and have all of the room.

`base.request_context` knows the present request. Work outside a request keeps to the bounds even after a change.
"""

from collections.abc import Callable
from typing import Any, Final

from flowserver.base.errors import ResourceThrottled
from flowserver.base.request_context import present_request

KEY_SHARE: Final = 8

PART: Final = 16
"""The reserve is this part of the bound. Work that is accepted while less than such a part waits is not counted, as
nothing is refused then."""

TOO_MUCH_OF_ONE_KEY = "the requests of this access key that wait leave too little room for others; try again later"


class LoadShedding:
    """Decides for one place where work waits. For one thread, or under a lock."""

    def __init__(self) -> None:
        self._counted: dict[str, int] = {}
        """Work that waits, by access key."""

    def accept(self, waiting: int, waiting_max: float, *, is_change: bool = False, is_sure: bool = False) -> str:
        """Accept more work of the present request, where `waiting` pieces of it wait; raises ResourceThrottled.

        Returns the access key under which it is counted until `ended`, or "" if it is not counted. A change is
        remembered. Work that `is_sure` is not refused.
        """
        request = present_request()
        key = request.key_id if request is not None and waiting * PART >= waiting_max else ""
        if not (is_sure or (request is not None and request.has_changed)):
            if waiting >= waiting_max:
                raise ResourceThrottled
            if key and self._has_its_share(key, waiting, waiting_max):
                raise ResourceThrottled(TOO_MUCH_OF_ONE_KEY)
        if is_change and request is not None:
            request.has_changed = True
        if key:
            self._counted[key] = self._counted.get(key, 0) + 1
        return key

    def ended(self, key: str) -> None:
        """Counted work waits no more."""
        left = self._counted[key] - 1
        if left:
            self._counted[key] = left
        else:
            del self._counted[key]

    def until_done(self, key: str) -> Callable[[Any], None]:
        """A callback for the future of counted work."""
        return lambda _: self.ended(key)

    def _has_its_share(self, key: str, waiting: int, waiting_max: float) -> bool:
        counted = self._counted.get(key, 0)
        return counted > 0 and counted >= KEY_SHARE * (waiting_max - waiting_max // PART - waiting)
