"""Which requests are refused while too much work waits, and what share of the room an access key has."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.base.errors import ResourceThrottled
from flowserver.base.request_context import RequestContext, apart_from_request
from flowserver.concurrency.load_shedding import TOO_MUCH_OF_ONE_KEY, LoadShedding

MAX = 160


def is_refused(*, is_full: bool, is_change: bool = False) -> bool:
    """Whether the present request is refused where as much as may waits, if `is_full`."""
    try:
        LoadShedding().accept(MAX if is_full else 0, MAX, is_change=is_change)
    except ResourceThrottled:
        return True
    return False


def test_a_request_is_refused_until_it_has_submitted_a_change() -> None:
    with RequestContext():
        assert not is_refused(is_full=False)
        assert is_refused(is_full=True)
        assert is_refused(is_full=True, is_change=True)
        assert not is_refused(is_full=False, is_change=True)
        assert not is_refused(is_full=True)
        assert not is_refused(is_full=True, is_change=True)
    with RequestContext():  # another one
        assert is_refused(is_full=True)


def test_what_is_written_apart_from_a_request_is_not_its_change() -> None:
    with RequestContext():
        with apart_from_request():
            assert not is_refused(is_full=False, is_change=True)
        assert is_refused(is_full=True)


def test_work_outside_requests_keeps_to_the_bounds() -> None:
    assert not is_refused(is_full=False, is_change=True)
    assert is_refused(is_full=True)


async def test_tasks_belong_to_their_request_while_it_lasts() -> None:
    over = asyncio.Event()

    async def change() -> None:
        assert not is_refused(is_full=False, is_change=True)

    async def outlive() -> bool:
        await over.wait()
        return is_refused(is_full=True)

    with RequestContext():
        outliving = asyncio.create_task(outlive())
        await asyncio.create_task(change())
        assert not is_refused(is_full=True)
    over.set()
    assert await outliving


class Place:
    """A place where work of requests waits until it is `served`."""

    def __init__(self, waiting_max: int = MAX) -> None:
        self.waiting_max = waiting_max
        self.shedding = LoadShedding()
        self.waiting: list[tuple[str, str]] = []
        """The key of each, and the one under which it is counted."""

    def asks(self, key: str) -> bool:
        """Whether a request of this key is accepted."""
        with RequestContext() as request:
            request.key_id = key
            try:
                counted = self.shedding.accept(len(self.waiting), self.waiting_max)
            except ResourceThrottled:
                return False
        self.waiting.append((key, counted))
        return True

    def floods(self, *keys: str) -> Counter[str]:
        """The keys ask by turns until all are refused; how much waits by key."""
        accepted = [True]
        while any(accepted):
            accepted = [self.asks(key) for key in keys]
        return Counter(key for key, _ in self.waiting)

    def serve(self, count: int) -> None:
        """The first of the waiting work is done."""
        for _ in range(min(count, len(self.waiting))):
            _, counted = self.waiting.pop(0)
            if counted:
                self.shedding.ended(counted)


@pytest.mark.parametrize(("keys", "each"), [(1, 135), (2, 71), (3, 48), (10, 15), (75, 2)])
def test_keys_that_flood_have_equal_shares_and_leave_room(keys: int, each: int) -> None:
    names = [f"k{number}" for number in range(keys)]
    place = Place()
    waiting = place.floods(*names)
    assert max(waiting.values()) - min(waiting.values()) <= 1
    assert min(waiting.values()) in (each, each - 1)
    for other in range(MAX - waiting.total()):
        assert place.asks(f"other {other}")
    assert not place.asks("too late")
    assert MAX - waiting.total() >= MAX // 16


def test_a_refusal_says_whose_fault_it_is() -> None:
    place = Place()
    place.floods("k")
    with RequestContext() as request, pytest.raises(ResourceThrottled) as told:
        request.key_id = "k"
        place.shedding.accept(len(place.waiting), MAX)
    assert told.value.message == TOO_MUCH_OF_ONE_KEY


def test_callers_without_keys_have_all_of_the_room() -> None:
    assert Place().floods("")[""] == MAX


def test_a_few_places_are_all_used() -> None:
    assert Place(5).floods("k")["k"] == 5


def test_work_that_is_sure_is_counted_and_not_refused() -> None:
    place = Place()
    place.floods("k")
    with RequestContext() as request:
        request.key_id = "k"
        assert place.shedding.accept(MAX, MAX, is_sure=True) == "k"


@given(st.lists(st.one_of(st.sampled_from("abc"), st.integers(1, 50)), max_size=400))
def test_a_key_with_nothing_waiting_is_accepted_at_any_time(steps: Sequence[str | int]) -> None:
    """Three keys ask as they like, and some of their work is done."""
    place = Place()
    for step in steps:
        if isinstance(step, int):
            place.serve(step)
        else:
            for _ in range(20):
                place.asks(step)
    assert place.asks("another")
    place.serve(MAX)
    assert place.shedding._counted == {}
