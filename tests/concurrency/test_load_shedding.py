"""Which requests are refused while too much work waits."""

import asyncio

from flowserver.base.request_context import RequestContext, apart_from_request
from flowserver.concurrency.load_shedding import is_refused


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
