"""A client that follows the rules for all clients: without a usable answer it sends the same request to
another server.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import aiohttp

from tests.chaos.journal import Journal

ANSWER_SECONDS = 4.0
"""After this time, plus any wait that the request asked for, a client gives up on a server: it may be stopped."""

PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer, and the number of failed requests before it."""

    status: int
    body: Any
    repeated: int

    @property
    def code(self) -> str:
        """The error code of a refusal."""
        return str(self.body.get("code", ""))


class Client:
    """Sends requests to any of the servers."""

    def __init__(self, session: aiohttp.ClientSession, urls: Sequence[str], journal: Journal, random: Random) -> None:
        self._session = session
        self._urls = urls
        self._journal = journal
        self._random = random

    async def ask(self, method: str, path: str, body: Any = None, wait_seconds: int = 0) -> Answer:
        """The first answer that is neither 5xx nor 429. Raises TimeoutError if there is none for `PATIENCE_SECONDS`.

        Every second try does not wait: a server that is killed sooner than that would never answer.
        """
        until = time.monotonic() + PATIENCE_SECONDS + wait_seconds
        repeated = 0
        while time.monotonic() < until:
            url = self._random.choice(self._urls) + path
            found = await self._once(method, url, body, 0 if repeated % 2 else wait_seconds)
            if found is not None and found[0] < 500 and found[0] != 429:
                return Answer(*found, repeated)
            repeated += 1
            self._journal.unanswered += 1
            await asyncio.sleep(PAUSE_SECONDS * self._random.random())
        raise TimeoutError(f"no server answered {method} {path} for {PATIENCE_SECONDS} s")

    async def _once(self, method: str, url: str, body: Any, wait_seconds: int) -> tuple[int, Any] | None:
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS + wait_seconds)
        query = {"wait": wait_seconds} if wait_seconds else {}
        try:
            async with self._session.request(method, url, json=body, params=query, timeout=timeout) as reply:
                return reply.status, await reply.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return None
