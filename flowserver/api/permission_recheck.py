"""Permission that ends with its key: requests that wait check repeatedly that their caller is still allowed."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from flowserver.base.errors import AccessDenied

RECHECK_SECONDS = 10.0
"""How long a waiting request may outlive its key."""

Check = Callable[[], Awaitable[object]]
"""Raises AccessDenied if the caller is not, or no longer, allowed."""


class WhileAllowed:
    """`with WhileAllowed(check):` ends its block with the AccessDenied that `check` raises.

    It asks every RECHECK_SECONDS; a block that ends sooner costs a timer. Any other error of `check`, such as that of a
    database that is away, ends nothing.
    """

    def __init__(self, check: Check) -> None:
        self._check = check
        self._denied: AccessDenied | None = None
        self._checking: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        """Begin to watch the present task."""
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._cancelling = task.cancelling()
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Watch no longer. Raises AccessDenied if that is what ended the block."""
        self._timer.cancel()
        if self._checking is not None:
            self._checking.cancel()
        if self._denied is not None and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise self._denied

    def _wait(self) -> None:
        self._timer = self._loop.call_later(RECHECK_SECONDS, self._begin)

    def _begin(self) -> None:
        self._checking = self._loop.create_task(self._ask())

    async def _ask(self) -> None:
        try:
            await self._check()
        except AccessDenied as error:
            self._denied = error
            self._task.cancel()
        except Exception:
            self._wait()
        else:
            self._wait()
