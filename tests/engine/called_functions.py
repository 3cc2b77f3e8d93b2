"""Functions in the test's own event loop: a script answers a call, or the call waits until the test answers."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from flowserver.base.json_values import InvalidJson, load_json

PATIENCE_SECONDS = 60
"""The time limit for a call that a test waits for."""


@dataclass(eq=False)
class Call:
    """A call under way; `gone` is set when the caller drops the connection."""

    function: str
    event: Any
    headers: Mapping[str, str]
    response: asyncio.Future[web.Response]
    method: str = "POST"
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def key(self) -> str:
        return self.headers.get("Idempotency-Key", "")

    @property
    def attempt(self) -> int:
        return int(self.headers.get("X-Flowserver-Attempt", 0))

    def reply(self, value: Any = None, status: int = 200) -> None:
        self.response.set_result(web.json_response({} if value is None else value, status=status))

    def fail(self, error: str) -> None:
        headers = {"X-Fc-Error-Type": "UnhandledInvocationError"}
        self.response.set_result(web.json_response({"errorType": error, "errorMessage": "m"}, headers=headers))


class Functions:
    """A function's title, such as `shop/pay`, is the path it is called at. Calls without a script wait for the test."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.scripts: dict[str, Callable[[Call], None]] = {}
        self._held: defaultdict[str, asyncio.Queue[Call]] = defaultdict(asyncio.Queue)
        app = web.Application()
        app.router.add_route("*", "/{title:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()

    async def stop(self) -> None:
        for call in self.calls:
            call.response.cancel()
        await self._runner.cleanup()

    def url(self, title: str) -> str:
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}/{title}"

    def echo(self, *titles: str) -> None:
        """Let these functions return their event at once."""
        self.scripts.update({title: lambda call: call.reply(call.event) for title in titles})

    async def next_call(self, title: str) -> Call:
        """Wait for the next call of the function that no script answers."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._held[title].get()

    def called(self, title: str) -> list[tuple[str, int]]:
        """Idempotency key and attempt of every call so far."""
        return [(call.key, call.attempt) for call in self.calls if call.function == title]

    async def _serve(self, request: web.Request) -> web.Response:
        response = asyncio.get_running_loop().create_future()
        event = await _event(request)
        call = Call(request.match_info["title"], event, request.headers, response, request.method)
        self.calls.append(call)
        script = self.scripts.get(call.function)
        if script is None:
            self._held[call.function].put_nowait(call)
        else:
            script(call)
        try:
            return await response
        except asyncio.CancelledError:
            call.gone.set()
            raise


async def _event(request: web.Request) -> Any:
    """The event of a call: parsed JSON, or bytes that are not JSON."""
    body = await request.read()
    try:
        return load_json(body.decode()) if body else None
    except (UnicodeDecodeError, InvalidJson):
        return body
