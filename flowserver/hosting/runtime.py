"""Calls a handler as the Python runtime of Function Compute does and turns what happens into a reply.

Results: bytes and str go back as they are, anything else as JSON. Failures: the documented error document
{errorMessage, errorType, stackTrace}; a process that ends and a time-out have a message only.
"""

import asyncio
import json
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any

from flowserver.hosting.context import FunctionContext
from flowserver.hosting.functions import Hook, HostedFunction


@dataclass(frozen=True, slots=True)
class HandlerReply:
    """What goes back to the caller: the handler's bytes, or an error document."""

    body: bytes
    failed: bool = False


async def call_handler(function: HostedFunction, event: bytes, context: FunctionContext) -> HandlerReply:
    """Call the handler in a thread of its own and wait for it, at most the function's time-out.

    Python cannot end a thread: a handler that overruns its time-out goes on unless it checks `context.stopped`, but
    its result is dropped.
    """
    return await _run("Function", partial(function.handler, event, context), function.timeout_seconds, context)


async def call_hook(title: str, hook: Hook, context: FunctionContext, seconds: float) -> HandlerReply:
    """Call a hook, which is called `title` should it take longer than `seconds`; its result is dropped."""
    return await _run(title, partial(_without_result, hook, context), seconds, context)


def _without_result(hook: Hook, context: FunctionContext) -> bytes:
    hook(context)
    return b""


async def _run(title: str, work: Callable[[], object], seconds: float, context: FunctionContext) -> HandlerReply:
    reply = _run_in_thread(lambda: _execute(work))
    try:
        return await asyncio.wait_for(reply, seconds)
    except TimeoutError:
        context.stopped.set()
        return _error_reply({"errorMessage": f"{title} timed out after {seconds} seconds"})


def _run_in_thread(work: Callable[[], HandlerReply]) -> asyncio.Future[HandlerReply]:
    # A daemon thread, which an executor has not: a handler that hangs must not keep the program from ending.
    future: Future[HandlerReply] = Future()
    future.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except Exception as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return asyncio.wrap_future(future)


def _execute(work: Callable[[], object]) -> HandlerReply:
    try:
        return HandlerReply(_to_bytes(work()))
    except Exception as error:
        return _error_reply(_describe(error))
    except BaseException:  # sys.exit() ends the process of a function in the cloud; here only the call
        return _error_reply({"errorMessage": "Process exited unexpectedly before completing request"})


def _to_bytes(result: object) -> bytes:
    if isinstance(result, bytes):
        return result
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    return text.encode()


def _describe(error: Exception) -> dict[str, Any]:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename != __file__]
    return {
        "errorMessage": str(error),
        "errorType": type(error).__name__,
        "stackTrace": [
            [f'File "{frame.filename}"', f"line {frame.lineno}", f"in {frame.name}", frame.line or ""]
            for frame in frames
        ],
    }


def _error_reply(document: dict[str, Any]) -> HandlerReply:
    return HandlerReply(json.dumps(document).encode(), failed=True)
