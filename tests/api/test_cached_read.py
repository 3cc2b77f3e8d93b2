"""How long results and failures of reads are cached."""

import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from flowserver.operations.cached_read import CachedRead


@pytest.mark.parametrize(("fails", "cached_seconds"), [(False, 80.0), (True, 4.0)])
async def test_a_failure_is_cached_for_as_long_as_it_took(
    fails: bool, cached_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, reads = 1_000.0, 0

    async def read() -> int:
        nonlocal now, reads
        now, reads = now + 4, reads + 1
        if fails:
            raise OperationalError("SELECT 1", {}, Exception("the server closed the connection"))
        return reads

    cached = CachedRead(read, seconds=1, patience_seconds=1, good_seconds=1)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    assert await cached.get() == (None if fails else 1)
    now += cached_seconds - 1
    await cached.get()
    assert reads == 1
    now += 2
    await cached.get()
    assert reads == 2
