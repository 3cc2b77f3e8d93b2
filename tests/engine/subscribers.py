"""A subscriber in the test's own event loop: accepts a message, refuses it, or holds it until the test answers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

PATIENCE_SECONDS = 60
"""The time limit for a message that a test waits for."""


@dataclass(eq=False)
class Push:
    """One request; it is answered when `response` is set, and `gone` is set when the sender drops the connection."""

    path: str
    body: str
    headers: Mapping[str, str]
    response: asyncio.Future[int]
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, status: int) -> None:
        self.response.set_result(status)


class Subscriber:
    """An HTTP endpoint for every path; answers with the `status` of the path, 200 for others, None to hold."""

    def __init__(self) -> None:
        self.status: dict[str, int | None] = {}
        self.pushes: list[Push] = []
        self._came: asyncio.Queue[Push] = asyncio.Queue()
        app = web.Application()
        app.router.add_post("/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()

    async def stop(self) -> None:
        for push in self.pushes:
            push.response.cancel()
        await self._runner.cleanup()

    def url(self, path: str) -> str:
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}/{path}"

    async def next(self) -> Push:
        """Wait for the next request."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._came.get()

    @property
    def has_more(self) -> bool:
        """Whether there were requests that the test has not taken."""
        return not self._came.empty()

    async def _serve(self, request: web.Request) -> web.Response:
        response = asyncio.get_running_loop().create_future()
        push = Push(request.match_info["path"], (await request.read()).decode(), request.headers, response)
        self.pushes.append(push)
        self._came.put_nowait(push)
        status = self.status.get(push.path, 200)
        if status is not None:
            push.answer(status)
        try:
            return web.Response(status=await response)
        except asyncio.CancelledError:
            push.gone.set()
            raise
