"""Runs an application as this process: serves on open sockets until a signal comes, then ends in order.

The order: other nodes take over the work that is not begun; requests that wait for an execution are answered now; if
there are other nodes, requests are still served for `FAREWELL_SECONDS`, each answer closing its connection; no new
connections; requests under way finish within `REQUESTS_STOP_SECONDS`; then the application's own shutdown, which
drains calls. A second signal kills the process at once. As after a crash, nothing that was acknowledged is lost.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from flowserver.api.bounded_server import BoundedServer
from flowserver.base.limits import Limits
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.one_packet_answers import JoiningProtocol
from flowserver.server import Application

log = logging.getLogger(__name__)

REQUESTS_STOP_SECONDS = 5
"""How long requests under way may take to end; then they are cut off."""

TELLING_SECONDS = 1.0
"""How long before that the callers that wait for a function get an error: it will not finish here."""

FAREWELL_SECONDS = 1.0
"""In this time busy clients close their connections, so that none of their requests meets a closing one, and load
balancers find another node. A single node skips it: its clients have no other node."""


def serve_until_stopped(app: Application, listeners: list[socket.socket], announce: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; `announce` is called once requests are answered.

    Raises what the application's start raises.
    """
    config = server_config(app, app.state.limits)
    server = _Server(app, config, announce)

    def stop() -> None:
        server.should_exit = True

    app.state.on_loss = stop
    with _stopping_by_signals(server), asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(app, server, listeners))


def server_config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """The uvicorn configuration for an application of ours."""
    return uvicorn.Config(
        app,
        loop="auto",  # uvloop, where it exists
        http=JoiningProtocol,
        ws="none",
        lifespan="off",  # run here instead: uvicorn would turn what its start raises into a traceback
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.idle_connection_seconds,
        timeout_graceful_shutdown=REQUESTS_STOP_SECONDS,
    )


async def leave(app: Application) -> None:
    """Begin to stop: give work away, answer long polls, and serve on for a while if there are other nodes."""
    log.info("stopping")
    engine = app.state.engine
    engine.answer_waiting()
    await engine.leave()
    if engine.membership.share.nodes > 1:
        await asyncio.sleep(FAREWELL_SECONDS)
    asyncio.get_running_loop().call_later(REQUESTS_STOP_SECONDS - TELLING_SECONDS, engine.interruptible.interrupt)


async def _serve(app: Application, server: uvicorn.Server, listeners: list[socket.socket]) -> None:
    async with app.router.lifespan_context(app):
        await server.serve(sockets=listeners)
        log.info("stopped answering requests")
        end_once_lost(app)
    log.info("stopped")


def end_once_lost(app: Application) -> None:
    """End the process at once if nothing can be written, now or later while calls are drained: its database was taken
    away, or its writer has crashed. Call it when no request is under way any more.

    Work under way could no longer be stored. The files of a lost database must not be closed in order
    (`Database.close`).
    """
    app.state.on_loss = app.state.engine.on_crash = partial(_end_if_lost, app)
    _end_if_lost(app)


def _end_if_lost(app: Application) -> None:
    if app.state.database.is_lost:
        _end_at_once("its database was deleted or replaced", ExitCode.UNREACHABLE)
    if app.state.engine.committer.has_crashed:
        _end_at_once("its writer has crashed", ExitCode.CRASHED)


def _end_at_once(reason: str, code: ExitCode) -> None:
    log.critical("the server ends, because %s", reason)
    logging.shutdown()
    os._exit(code)


class QuietServer(BoundedServer):
    """uvicorn with our limits. It reports when it serves, and leaves signals to its caller."""

    def __init__(self, config: uvicorn.Config, limits: Limits, announce: Callable[[], None]) -> None:
        super().__init__(config, limits)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets=sockets)
        self._announce()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: uvicorn's own way raises the signal again at the end, which would make a clean end look killed."""
        yield


class _Server(QuietServer):
    """A QuietServer that lets the application leave (`leave`) before it stops."""

    def __init__(self, app: Application, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config, app.state.limits, announce)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving."""
        await leave(self._app)
        await super().shutdown(sockets=sockets)


@contextmanager
def _stopping_by_signals(server: uvicorn.Server) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM)

    def stop(*_: object) -> None:
        server.should_exit = True
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield
    finally:
        for number, action in zip(numbers, before, strict=True):
            signal.signal(number, action)
