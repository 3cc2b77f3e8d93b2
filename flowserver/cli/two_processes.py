"""Runs an application as two processes: this one has the engine, and the front, forked from it, speaks HTTP.

They end together. When this process ends, however it does, the front reads the end of its link and ends at once,
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
from functools import partial

import uuid_utils

from flowserver.api.internal_faults import as_fault
from flowserver.api.rpc.local_actions import LocalActions
from flowserver.base.limits import Limits
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.one_process import QuietServer, end_once_lost, leave, server_config
from flowserver.concurrency.threads import run_aside
from flowserver.front.actions import handlers_of_actions
from flowserver.front.front import COUNTS, Front
from flowserver.front.function_calls import DistantInvoker
from flowserver.front.keys import handlers_of_keys
from flowserver.front.link import Handler, Link
from flowserver.front.relaying import Relayed
from flowserver.operations.key_sources import EngineKeys
from flowserver.server import Application

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve_with_front(app: Application, listeners: list[socket.socket], announce: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; `announce` is called once requests are answered. Closes the listeners here.

    Raises CommandFailed where processes cannot be forked, and what the application's start raises.
    """
    with (
        _forked(app, listeners) as end,
        asyncio.Runner(loop_factory=server_config(app, app.state.limits).get_loop_factory()) as runner,
    ):
        runner.run(_run_engine(app, end, announce))


@contextlib.contextmanager
def _forked(app: Application, listeners: list[socket.socket]) -> Iterator[socket.socket]:
    """The front, from here to the block's end; yields this end of the link to it."""
    if not hasattr(os, "fork"):
        raise CommandFailed("this system cannot fork processes: leave `processes` at 1", ExitCode.USAGE)
    if threading.active_count() > 1:
        raise CommandFailed("something here has started threads, and a fork has none of them: leave `processes` at 1")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # were it ignored, the front's pid could soon be another process's
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            ours.close()
            _become_front(app, listeners, theirs)
            status = 0
        except BaseException:
            log.exception("the process that speaks HTTP cannot go on")
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
    told_to_stop = _signalled()
    app.state.on_loss = told_to_stop.set
    async with app.router.lifespan_context(app):
        handlers |= Relayed(app, link).handlers
        handlers |= handlers_of_keys(EngineKeys(app.state.engine))
        handlers |= handlers_of_actions(LocalActions(app.state.operations))
        app.state.counts_of_front = partial(link.call, COUNTS)
        await link.call("serve")
        announce()
        await told_to_stop.wait()
        await link.call("leave")
        await leave(app)
        await link.call("stop")
        log.info("stopped answering requests")
        end_once_lost(app)
    link.lost.remove_done_callback(_end_with_front)
    link.close()
    log.info("stopped")


def _end_with_front(_: object) -> None:
    log.critical("the process that speaks HTTP has ended, and so does this one")
    os._exit(1)


def _signalled() -> asyncio.Event:
    """Set by the first signal; a second one kills."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        told.set()
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in SIGNALS:
        loop.add_signal_handler(number, tell)
    return told


def _become_front(app: Application, listeners: list[socket.socket], end: socket.socket) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    uuid_utils.reseed_rng()
    with asyncio.Runner(loop_factory=server_config(app, app.state.limits).get_loop_factory()) as runner:
        runner.run(_run_front(app, listeners, end))


async def _run_front(app: Application, listeners: list[socket.socket], end: socket.socket) -> None:
    state = app.state
    settings = state.settings
    tracer = app.make_tracer()
    front = Front(
        state.limits,
        state.clock,
        settings.allowed_hosts,
        is_wide=state.is_wide,
        has_console=settings.console,
        outgoing=state.outgoing,
        tracer=tracer,
    )
    listening = _Listening(front, listeners, state.limits)

    async def begin_leaving() -> None:
        front.is_leaving = True

    async def stop() -> None:
        await listening.end()
        if tracer is not None:
            await run_aside(tracer.close)

    handlers = {**front.handlers, "serve": listening.begin, "leave": begin_leaving, "stop": stop}
    link = await Link.connected(end, handlers, as_fault)
    front.attach(link)
    await link.lost
    os._exit(0)  # all that is still under way here was for the engine


class _Listening:
    """The front's server, which begins and ends as the engine says; if it ends otherwise, so does this process."""

    def __init__(self, front: Front, listeners: list[socket.socket], limits: Limits) -> None:
        self._listeners = listeners
        self._begun = asyncio.Event()
        self._server = QuietServer(server_config(front, limits), limits, self._begun.set)
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Return when requests are answered."""
        self._task = asyncio.create_task(self._server.serve(sockets=self._listeners))
        self._task.add_done_callback(self._note_end)
        await self._begun.wait()

    async def end(self) -> None:
        """Return when the last request has been answered."""
        assert self._task is not None
        self._server.should_exit = True
        await asyncio.wait([self._task])

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not self._server.should_exit:
            log.critical("no requests are answered any more", exc_info=task.exception())
            os._exit(1)
