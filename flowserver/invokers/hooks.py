"""The hooks of functions: `initialize` before a node's first call, `preStop` when an invocation that runs is stopped.

The function's worker is called over HTTP, for as long as its registration allows. Only the status of a hook's reply
counts.
"""

import logging
from functools import partial

from flowserver.concurrency.single_flight import SingleFlight
from flowserver.invokers.calls import Endpoint, Failed, Invoker
from flowserver.invokers.web_requests import WebRequest
from flowserver.machine.messages import Failure

log = logging.getLogger(__name__)

NOT_STARTED = "FC.FunctionNotStarted"
INITIALIZED_MAX = 10_000
"""Registrations that are remembered; a further one makes all be initialized anew, as after a restart."""

Registration = tuple[tuple[str, str], int]
"""Under what name, and when."""


class Hooks:
    """Calls hooks, `initialize` once for each registration, however many calls wait for that."""

    def __init__(self, invoker: Invoker) -> None:
        self._invoker = invoker
        self._initialized: set[Registration] = set()
        self._initializing: SingleFlight[Registration, Failure | None] = SingleFlight()

    def is_initialized(self, endpoint: Endpoint) -> bool:
        """Whether the function may be called as it is."""
        return endpoint.initialize_url is None or _registration(endpoint) in self._initialized

    async def initialize(self, endpoint: Endpoint, request_id: str) -> Failure | None:
        """Call the initialize hook if it is due; returns the error that prevents a call, or None. After a failure the
        next call tries again.
        """
        if self.is_initialized(endpoint):
            return None
        return await self._initializing.run(_registration(endpoint), partial(self._initialize, endpoint, request_id))

    async def pre_stop(self, endpoint: Endpoint, request_id: str) -> None:
        """Tell the function that an invocation is being stopped. A failure of the hook does not prevent the stop."""
        if endpoint.pre_stop_url is None:
            return
        problem = await self._call("GET", endpoint.pre_stop_url, endpoint, request_id, "/pre-stop")
        if problem is not None:
            log.warning("the pre-stop hook of %s failed: %s", _title(endpoint), problem)

    async def _initialize(self, endpoint: Endpoint, request_id: str) -> Failure | None:
        assert endpoint.initialize_url is not None
        problem = await self._call("POST", endpoint.initialize_url, endpoint, request_id, "/initialize")
        if problem is not None:
            return Failure(NOT_STARTED, f"the initialize hook of {_title(endpoint)} failed: {problem}")
        if len(self._initialized) >= INITIALIZED_MAX:
            self._initialized.clear()
        self._initialized.add(_registration(endpoint))
        return None

    async def _call(self, method: str, url: str, endpoint: Endpoint, request_id: str, path: str) -> str | None:
        """What was wrong, if anything."""
        headers = {**endpoint.headers, "X-Fc-Request-Id": request_id, "X-Fc-Control-Path": path}
        service, headers["X-Fc-Function-Name"] = endpoint.registered_as
        if service:
            headers["X-Fc-Service-Name"] = service
        request = WebRequest(method, url, endpoint.hook_seconds, headers, message_id=request_id)
        reply = await self._invoker.send(request)
        while isinstance(reply, Failed) and reply.is_own:  # which took all of its time
            reply = await self._invoker.send(request)
        if isinstance(reply, Failed):
            return reply.cause
        return None if 200 <= reply.status < 300 else f"it answered {reply.status}"


def _registration(endpoint: Endpoint) -> Registration:
    return endpoint.registered_as, endpoint.modified_at


def _title(endpoint: Endpoint) -> str:
    return "/".join(filter(None, endpoint.registered_as))
