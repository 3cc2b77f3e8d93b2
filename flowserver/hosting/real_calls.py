"""Real calls of flow tests: to a program at a URL, and to a Python handler that is loaded into this process.

A handler is written and called as `flowserver functions serve` hosts it. What counts as a failure is what a server
would say.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import redirect_stdout
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import dump_json
from flowserver.base.limits import Limits
from flowserver.base.request_ids import call_request_id
from flowserver.base.secret_references import MARK
from flowserver.flowtests.real_calls import NO_CALLEE, REAL_CALL_SECONDS, Callee, NotAvailable, RealCall, check_callee
from flowserver.hosting.context import make_context
from flowserver.hosting.errors import HostingError
from flowserver.hosting.functions import HostedFunction, load_function
from flowserver.hosting.runtime import call_handler
from flowserver.invokers.calls import Endpoint, Failed, Invocation, Replied, Reply
from flowserver.invokers.endpoint_rules import check_endpoint
from flowserver.invokers.http import HttpInvoker
from flowserver.invokers.replies import failure_in, read_reply
from flowserver.language.graph import ActionTarget, FlowTarget, FunctionTarget, QueueTarget, Target, TopicTarget
from flowserver.machine.messages import Failure, Result, Success

_FAILED: Final = {"X-Fc-Error-Type": "UnhandledInvocationError"}


class RealCalls:
    """The callees of some test files, and what they need: close it after the tests.

    A handler's file is loaded once, so that its module keeps its state from call to call. Closing unloads it and the
    modules beside it, so that a change of the file counts when it is opened again.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._handlers: dict[tuple[Path, str], Callee] = {}
        self._folders: set[Path] = set()
        self._runner: asyncio.Runner | None = None
        self._invoker: HttpInvoker | None = None
        self._known = set(sys.modules)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close connections, and unload handlers."""
        if self._runner is not None:
            if self._invoker is not None:
                self._runner.run(self._invoker.close())
            self._runner.close()
        for name in set(sys.modules) - self._known:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).parent in self._folders:
                del sys.modules[name]

    def open(self, name: str, folder: Path) -> Callee:
        """The callee that a test file in this folder names; raises NotAvailable."""
        check_callee(name)
        if "://" in name:
            return self._endpoint(name)
        key = folder.resolve(), name
        if key not in self._handlers:
            self._handlers[key] = self._handler(folder, name)
        return self._handlers[key]

    def _endpoint(self, url: str) -> Callee:
        try:
            check_endpoint(url, {}, REAL_CALL_SECONDS)
        except InvalidArgument as error:
            raise NotAvailable(error.message.rstrip("."), NO_CALLEE) from None
        if MARK in url:
            raise NotAvailable("a test has no secrets to put into a URL", NO_CALLEE)
        endpoint = Endpoint(url, {}, REAL_CALL_SECONDS)
        return lambda call: self._call(call, lambda invocation: self._post(invocation, endpoint))

    async def _post(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        if self._invoker is None:
            self._invoker = HttpInvoker(self._limits)
        return await self._invoker.exchange(invocation, endpoint)

    def _handler(self, folder: Path, name: str) -> Callee:
        self._folders.add((folder / name.rpartition(":")[0]).resolve().parent)
        try:
            with redirect_stdout(sys.stderr):
                function = load_function("real", name, folder, REAL_CALL_SECONDS)
        except HostingError as error:
            raise NotAvailable(str(error).removeprefix("real: "), NO_CALLEE) from None
        return lambda call: self._call(call, lambda invocation: self._handle(function, invocation))

    async def _handle(self, function: HostedFunction, invocation: Invocation) -> Reply:
        context = make_context(function, invocation.request_id or "", invocation.qualifier, _headers(invocation))
        event = invocation.event if isinstance(invocation.event, bytes) else invocation.event.encode()
        with redirect_stdout(sys.stderr):  # the command's results are on stdout
            reply = await call_handler(function, event, context)
        return Reply(200, _FAILED if reply.failed else {}, reply.body)

    def _call(self, call: RealCall, make: Callable[[Invocation], Coroutine[Any, Any, Reply | Failed]]) -> Result:
        if self._runner is None:
            self._runner = asyncio.Runner()
        invocation = _invocation(call)
        reply = self._runner.run(make(invocation))
        read = read_reply if call.wants_result else _read_receipt
        found = read(invocation, reply, self._limits)
        return Success(found.output) if isinstance(found, Replied) else Failure(found.error, found.cause)


def _read_receipt(invocation: Invocation, reply: Reply | Failed, limits: Limits) -> Replied | Failed:
    """What a worker answers for a message: anything, unless it fails."""
    if isinstance(reply, Failed):
        return reply
    return failure_in(invocation, reply.status, reply.headers, reply.body, limits) or Replied({})


def _invocation(call: RealCall) -> Invocation:
    command = call.command
    service, qualifier, function = _names(command.target)
    return Invocation(
        service=service,
        qualifier=qualifier,
        function=function,
        event=dump_json(call.input),
        invocation_id=None,
        idempotency_key=command.idempotency_key,
        attempt=command.attempt,
        timeout_ms=round(call.seconds * 1000),
        flow_name=call.flow_name,
        execution_name=call.execution_name,
        step_name=command.step_name,
        request_id=call_request_id(command.idempotency_key, command.attempt),
    )


def _headers(invocation: Invocation) -> dict[str, str]:
    """What a hosted function reads of its call."""
    return {
        "x-flowserver-attempt": str(invocation.attempt),
        "x-flowserver-flow": invocation.flow_name,
        "x-flowserver-execution": invocation.execution_name,
        "x-flowserver-step": invocation.step_name,
        "idempotency-key": invocation.idempotency_key,
    }


def _names(target: Target) -> tuple[str, str, str]:
    """Service, qualifier and name of what is called."""
    match target:
        case FunctionTarget(_, service, qualifier, function):
            return service, qualifier, function
        case ActionTarget(_, service, api):
            return service, "", api
        case FlowTarget(_, name) | QueueTarget(_, name) | TopicTarget(_, name):
            return "", "", name
