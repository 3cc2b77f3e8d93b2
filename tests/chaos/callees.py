"""The functions of a run, over HTTP: they answer, record every call, and survive all faults."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web

from flowserver.base.json_values import JsonObject, dump_json
from tests.chaos.answers import TITLES, SteadyFunctions, error_document
from tests.chaos.journal import Call, Journal
from tests.simulation.functions import TOKEN, Answer, event_text

Accept = Callable[[Call, str, Answer], asyncio.Event | None]
"""Takes a call that passed on a task token, and the result to report under it. For a function that answers only after
the report (or after a while, if the report cannot be made) it also takes an event to set.
"""

EARLY_SECONDS = 1.0


class Callees:
    """All functions of a run; `url` is their address."""

    def __init__(self, functions: SteadyFunctions, journal: Journal, random: Random, accept: Accept) -> None:
        self.url = ""
        self._functions = functions
        self._journal = journal
        self._random = random
        self._accept = accept
        self._never = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen on a free port of 127.0.0.1 while the block runs."""
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/{title:.+}", self._serve)
        # A handler is cancelled as soon as its caller's connection ends. This reveals the calls of a killed node.
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, keepalive_timeout=600, shutdown_timeout=1
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        try:
            yield
        finally:
            self._never.set()
            await runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        event: JsonObject = await request.json()
        headers = request.headers
        call = Call(
            callee=TITLES[request.match_info["title"]],
            event_text=event_text(event),
            key=headers["Idempotency-Key"],
            attempt=int(headers["X-Flowserver-Attempt"]),
            flow=headers["X-Flowserver-Flow"],
            execution=headers["X-Flowserver-Execution"],
            step=headers["X-Flowserver-Step"],
            began=time.monotonic(),
        )
        self._journal.calls.append(call)
        answer = self._functions.answer(call.callee, event, 0)
        try:
            await self._work(call, event, answer)
        except asyncio.CancelledError:
            call.cut_at = time.monotonic()
            raise
        return _response(call, answer)

    async def _work(self, call: Call, event: JsonObject, answer: Answer) -> None:
        """Wait as long as the answer takes."""
        token = event.get(TOKEN)
        if isinstance(token, str) and not answer.is_silent and not answer.at_submission:
            reported = self._accept(call, token, answer)
            if reported is not None:
                await asyncio.wait([asyncio.create_task(reported.wait())], timeout=EARLY_SECONDS)
                return
        call.is_silent = answer.is_silent and token is None
        if call.is_silent:
            await self._never.wait()
        self._journal.calls_at_work += 1
        try:
            await asyncio.sleep(self._random.choices((0.05, 0.3, 1.0, 2.0), (4, 3, 2, 1))[0] * self._random.random())
        finally:
            self._journal.calls_at_work -= 1


def _response(call: Call, answer: Answer) -> web.Response:
    """The HTTP response. A function that has passed its token on says only that."""
    document = error_document(answer)
    if call.callee == "ask" and not answer.at_submission:
        return web.json_response({"submitted": True})
    if document is not None:
        return web.json_response(document, headers={"X-Fc-Error-Type": "UnhandledInvocationError"}, dumps=dump_json)
    return web.json_response(answer.returns if isinstance(answer.returns, dict) else {}, dumps=dump_json)
