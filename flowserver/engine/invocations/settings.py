"""How asynchronous invocations of functions go right now, remembered for a moment."""

import asyncio
from functools import partial

from sqlalchemy import Connection

from flowserver.engine.commit.reader import Reader
from flowserver.engine.functions.registry import REMEMBER_SECONDS, REMEMBERED_MAX, FunctionKey
from flowserver.machine.invocations.states import InvocationSettings
from flowserver.store.invocations.settings import find_async_settings


class AsyncSettings:
    """Looks up what is configured for asynchronous invocations."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[FunctionKey, tuple[InvocationSettings, float]] = {}

    async def find(self, key: FunctionKey) -> InvocationSettings:
        """The settings of the function under its qualifier; the defaults if there are none."""
        now = asyncio.get_running_loop().time()
        known = self._known.get(key)
        if known is not None and now < known[1]:
            return known[0]
        settings = await self._reader.ask(partial(_find, key=key))
        if len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[key] = settings, now + REMEMBER_SECONDS
        return settings

    def forget(self) -> None:
        """Some of them have changed."""
        self._known.clear()


def _find(connection: Connection, key: FunctionKey) -> InvocationSettings:
    return find_async_settings(connection, *key)
