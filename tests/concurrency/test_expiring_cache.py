"""A cache of reads for a moment."""

import asyncio

from flowserver.concurrency.expiring_cache import ExpiringCache


class Source:
    """Values that a test changes; `gate` holds reads back while it is clear."""

    def __init__(self) -> None:
        self.values: dict[str, list[int]] = {"a": [1], "b": [2], "c": [3]}
        self.reads: list[str] = []
        self.begun = asyncio.Semaphore(0)
        self.gate = asyncio.Event()
        self.gate.set()

    async def read(self, key: str) -> list[int]:
        self.reads.append(key)
        value = list(self.values[key])
        self.begun.release()
        await self.gate.wait()
        return value


def cache_of(source: Source, seconds: float = 60.0, keys_max: int = 100) -> ExpiringCache[str, list[int]]:
    return ExpiringCache(source.read, seconds=seconds, keys_max=keys_max)


async def test_callers_share_one_read_and_later_ones_need_none() -> None:
    cache = cache_of(source := Source())
    assert cache.cached("a") is None
    found = await asyncio.gather(*(cache.find("a") for _ in range(9)))
    assert all(each is found[0] for each in [*found, await cache.find("a"), cache.cached("a")])
    assert source.reads == ["a"]


async def test_a_value_that_has_not_changed_is_the_same_object() -> None:
    cache = cache_of(source := Source(), seconds=0)
    before = await cache.find("a")
    assert cache.cached("a") is None
    assert await cache.find("a") is before
    source.values["a"] = [7]
    assert await cache.find("a") == [7]
    assert source.reads == ["a", "a", "a"]


async def test_a_read_from_before_a_change_is_not_cached_after_it() -> None:
    cache = cache_of(source := Source())
    source.gate.clear()
    early = asyncio.create_task(cache.find("a"))
    await source.begun.acquire()
    source.values["a"] = [7]
    cache.forget()
    late = asyncio.create_task(cache.find("a"))
    await source.begun.acquire()
    source.gate.set()
    assert (await early, await late, cache.cached("a")) == ([1], [7], [7])


async def test_keys_are_bounded() -> None:
    cache = cache_of(Source(), keys_max=2)
    for key in ("a", "b", "c"):
        await cache.find(key)
    assert (cache.cached("a"), cache.cached("b"), cache.cached("c")) == (None, None, [3])
