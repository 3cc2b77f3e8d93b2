"""How long results of reads are cached, and failures."""

import asyncio

import pytest
from sqlalchemy.exc import OperationalError

from flowserver.operations.remembered import Remembered


@pytest.mark.parametrize(("fails", "cached_seconds"), [(False, 80.0), (True, 4.0)])
async def test_a_failure_is_cached_for_as_long_as_it_took(
    fails: bool, cached_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks = 1_000.0, 0

    async def look() -> int:
        nonlocal now, looks
        now, looks = now + 4, looks + 1
        if fails:
            raise OperationalError("SELECT 1", {}, Exception("the server closed the connection"))
        return looks

    remembered = Remembered(look, seconds=1, patience_seconds=1, good_seconds=1)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    assert await remembered.get() == (None if fails else 1)
    now += cached_seconds - 1
    await remembered.get()
    assert looks == 1
    now += 2
    await remembered.get()
    assert looks == 2
