"""Instances of hosted functions: the calls of each, and its hooks at the moments at which the cloud calls them.

A function has one instance, which lives as long as the program. A hook that fails is logged, as in the cloud; only a
failed initializer fails the call that needed it.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from uuid import uuid4

from flowserver.concurrency.single_flight import SingleFlight
from flowserver.hosting.context import FunctionContext, make_context
from flowserver.hosting.functions import Hook, HostedFunction
from flowserver.hosting.logs import current_request_id, plain
from flowserver.hosting.runtime import HandlerReply, call_handler, call_hook

_DONE = HandlerReply(b"")


class Instance:
    """The instance of one function. Make and use it inside one event loop."""

    def __init__(self, function: HostedFunction) -> None:
        self.function = function
        self._under_way = 0
        self._is_initialized = function.initializer is None
        self._initializing: SingleFlight[None, HandlerReply] = SingleFlight()
        self._freezing: set[asyncio.Task[HandlerReply]] = set()
        self._was_called = False

    async def call(self, event: bytes, context: FunctionContext) -> HandlerReply:
        """One call, after the initializer if that has not run; a reply comes in any case, as late as the time-out."""
        begun = await self.initialize(context.request_id)
        if begun.failed:
            return begun
        self._was_called = True
        self._under_way += 1
        try:
            return await self._invoke(event, context)
        finally:
            self._under_way -= 1
            self._freeze(context.request_id)

    async def initialize(self, request_id: str) -> HandlerReply:
        """Run the initializer unless it has run; several who ask meanwhile wait for the same run."""
        if self._is_initialized:
            return _DONE
        return await self._initializing.run(None, partial(self._initialize, request_id))

    async def pre_stop(self, request_id: str) -> HandlerReply:
        """Run the hook for calls that were stopped from outside."""
        return await self._run("PreStop", self.function.pre_stop, request_id)

    async def close(self) -> None:
        """The program ends: run the last hooks, if the function was called at all."""
        for task in list(self._freezing):
            with suppress(asyncio.CancelledError):
                await task
        if self._was_called and self.function.pre_stop is not None:
            await self.pre_stop(str(uuid4()))

    async def _initialize(self, request_id: str) -> HandlerReply:
        reply = await self._run("Initialize", self.function.initializer, request_id)
        self._is_initialized = not reply.failed
        return reply

    async def _invoke(self, event: bytes, context: FunctionContext) -> HandlerReply:
        current_request_id.set(context.request_id)
        plain.info("FC Invoke Start RequestId: %s", context.request_id)
        reply = await call_handler(self.function, event, context)
        _log_end("Invoke", context.request_id, reply, "Unhandled function error")
        return reply

    def _freeze(self, request_id: str) -> None:
        """Between calls the cloud pauses an instance, and says so before."""
        if self._under_way or self.function.pre_freeze is None:
            return
        freezing = asyncio.create_task(self._run("PreFreeze", self.function.pre_freeze, request_id))
        self._freezing.add(freezing)
        freezing.add_done_callback(self._freezing.discard)

    async def _run(self, moment: str, hook: Hook | None, request_id: str) -> HandlerReply:
        if hook is None:
            return _DONE
        current_request_id.set(request_id)
        plain.info("FC %s Start RequestId: %s", moment, request_id)
        context = make_context(self.function, request_id, "")
        reply = await call_hook(moment, hook, context, self.function.hook_seconds)
        _log_end(moment, request_id, reply, f"Unhandled {moment} error")
        return reply


def _log_end(moment: str, request_id: str, reply: HandlerReply, error: str) -> None:
    if reply.failed:
        logging.getLogger().error("%s", reply.body.decode())
        plain.info("FC %s End RequestId: %s, Error: %s", moment, request_id, error)
    else:
        plain.info("FC %s End RequestId: %s", moment, request_id)
