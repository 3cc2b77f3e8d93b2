"""The settings of functions' asynchronous invocations, cached for a moment."""

from cachetools import TTLCache

from flowserver.engine.commit.reader import Reader
from flowserver.engine.functions.registry import CACHED_MAX, CACHED_SECONDS, FunctionKey
from flowserver.machine.invocations.states import InvocationSettings
from flowserver.store.invocations.settings import find_async_settings


class AsyncSettings:
    """Reads and caches the settings of asynchronous invocations."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.forget()

    async def find(self, key: FunctionKey) -> InvocationSettings:
        """The settings of the function with its qualifier; the defaults if none are stored."""
        known = self._known  # a read that began before `forget` goes to the old cache
        settings = known.get(key)
        if settings is None:
            settings = known[key] = await self._reader.ask(lambda connection: find_async_settings(connection, *key))
        return settings

    def forget(self) -> None:
        """Evict everything: some settings have changed."""
        self._known: TTLCache[FunctionKey, InvocationSettings] = TTLCache(CACHED_MAX, CACHED_SECONDS)
