"""Runs an application as two processes: this one has the engine, and the front, forked from it, speaks HTTP.

They share their fate. When this process ends, however it does, the front reads the end of its link and ends at once,
so that the port is free again. When the front ends, this process does as after a crash: calls that were being made are
made again after the next start, and nothing that was acknowledged is lost.

Signals are for this process; the front ignores those that a terminal or a service manager sends to both.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uuid_utils

from flowserver.api.faults import as_fault
from flowserver.api.rpc.acting import Acting
from flowserver.cli.failures import CommandFailed
from flowserver.cli.process import QuietServer, leave, server_config
from flowserver.front.calls import DistantInvoker
from flowserver.front.front import ACT, Front
from flowserver.front.keys import handlers_of_keys
from flowserver.front.link import Handler, Link
from flowserver.front.relaying import Relayed
from flowserver.operations.keys import EngineKeys
from flowserver.server import Application

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve_with_front(app: Application, listeners: list[socket.socket], announce: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; `announce` is called once requests are answered. Closes the listeners here.

    Raises CommandFailed where processes cannot be forked, and whatever the application's start raises.
    """
    with _forked(app, listeners) as end, asyncio.Runner(loop_factory=server_config(app).get_loop_factory()) as runner:
        runner.run(_run_engine(app, end, announce))


@contextlib.contextmanager
def _forked(app: Application, listeners: list[socket.socket]) -> Iterator[socket.socket]:
    """The front, from here to the block's end; yields this end of the link to it."""
    if not hasattr(os, "fork"):
        raise CommandFailed("this system cannot fork processes: leave `processes` at 1")
    assert threading.active_count() == 1, "what other threads hold would stay held in the fork"
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            ours.close()
            _become_front(app, listeners, theirs)
            status = 0
        finally:
            os._exit(status)  # nothing of what this process was in the middle of is to be ended twice
    theirs.close()
    for listener in listeners:
        listener.close()  # else clients could still connect when the front has stopped listening
    try:
        yield ours
    finally:
        os.kill(pid, signal.SIGKILL)  # it has nothing left to do
        os.waitpid(pid, 0)


async def _run_engine(app: Application, end: socket.socket, announce: Callable[[], None]) -> None:
    handlers: dict[str, Handler] = {}
    link = await Link.connected(end, handlers, as_fault)
    link.lost.add_done_callback(_end_with_front)
    app.state.invoker = DistantInvoker(link, app.state.limits)
    async with app.router.lifespan_context(app):
        handlers |= Relayed(app, link).handlers
        handlers |= handlers_of_keys(EngineKeys(app.state.engine))
        handlers[ACT] = Acting(app.state.operations)
        with _told_to_stop() as told:
            await link.call("serve")
            announce()
            await told.wait()
        await link.call("leave")
        await leave(app)
        await link.call("stop")
        log.info("stopped answering requests")
    link.lost.remove_done_callback(_end_with_front)
    link.close()
    log.info("stopped")


def _end_with_front(_: object) -> None:
    log.critical("the process that speaks HTTP has ended, and so does this one")
    os._exit(1)


@contextlib.contextmanager
def _told_to_stop() -> Iterator[asyncio.Event]:
    """Set by the first signal; a second one kills."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, told.set)
    try:
        yield told
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)


def _become_front(app: Application, listeners: list[socket.socket], end: socket.socket) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    uuid_utils.reseed_rng()
    with asyncio.Runner(loop_factory=server_config(app).get_loop_factory()) as runner:
        runner.run(_run_front(app, listeners, end))


async def _run_front(app: Application, listeners: list[socket.socket], end: socket.socket) -> None:
    front = Front(app.state.limits, app.state.clock, app.state.settings.allowed_hosts)
    serving = asyncio.Event()
    server = QuietServer(server_config(front), serving.set)
    running: list[asyncio.Task[None]] = []

    async def serve() -> None:
        running.append(asyncio.create_task(server.serve(sockets=listeners)))
        await serving.wait()

    async def start_leaving() -> None:
        front.is_leaving = True

    async def stop() -> None:
        server.should_exit = True
        await running[0]

    link = await Link.connected(end, {**front.handlers, "serve": serve, "leave": start_leaving, "stop": stop}, as_fault)
    front.attach(link)
    await link.lost
    os._exit(0)  # whatever is still under way here was for the engine
