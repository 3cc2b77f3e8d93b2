"""How asynchronous invocations of functions go right now, remembered for a moment."""

from functools import partial

from cachetools import TTLCache
from sqlalchemy import Connection

from flowserver.engine.commit.reader import Reader
from flowserver.engine.functions.registry import REMEMBER_SECONDS, REMEMBERED_MAX, FunctionKey
from flowserver.machine.invocations.states import InvocationSettings
from flowserver.store.invocations.settings import find_async_settings


class AsyncSettings:
    """Looks up what is configured for asynchronous invocations."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.forget()

    async def find(self, key: FunctionKey) -> InvocationSettings:
        """The settings of the function under its qualifier; the defaults if there are none."""
        known = self._known  # what was read before a change goes to the cache that the change has replaced
        settings = known.get(key)
        if settings is None:
            settings = known[key] = await self._reader.ask(partial(_find, key=key))
        return settings

    def forget(self) -> None:
        """Some of them have changed."""
        self._known: TTLCache[FunctionKey, InvocationSettings] = TTLCache(REMEMBERED_MAX, REMEMBER_SECONDS)


def _find(connection: Connection, key: FunctionKey) -> InvocationSettings:
    return find_async_settings(connection, *key)
