"""Function calls and their results: data only. `http` makes the calls."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from flowserver.base.json_values import JsonObject
from flowserver.invokers.endpoint_rules import HOOK_SECONDS_DEFAULT
from flowserver.invokers.web_requests import WebRequest


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a registered function is reached; `check_endpoint` accepted it when it was registered."""

    url: str = field(repr=False)  # URLs and headers may hold secrets: keep them out of logs
    headers: Mapping[str, str] = field(repr=False)
    timeout_seconds: int
    """The function's own time-out, 1 to 86,400."""
    registered_as: tuple[str, str] = ("", "")
    """Service (perhaps with a qualifier) and function."""
    modified_at: int = 0
    """When it was registered last (ms)."""
    initialize_url: str | None = field(default=None, repr=False)
    pre_stop_url: str | None = field(default=None, repr=False)
    hook_seconds: int = HOOK_SECONDS_DEFAULT
    """How long each of these two may take, 1 to 90."""
    concurrency_max: int | None = None
    """Calls of it that all nodes together make at once, None for as many as they can."""
    waiting_max: int | None = None
    """Calls of it that may wait for one of these slots, None for the server's limit."""


class Invocation(msgspec.Struct, frozen=True):
    """One attempt to call a function."""

    service: str
    """"" in the form of resourceArn that names no service."""
    qualifier: str
    """Version or alias; "" if the resourceArn names none."""
    function: str
    event: str | bytes
    """The body of the request: a step's input as a JSON text, or bytes that mean something to the function alone."""
    invocation_id: str | None
    """`StatefulAsyncInvocationID` of the step's serviceParams."""
    idempotency_key: str
    """The same for every attempt of one entry of the step, so that a function can recognise a repetition."""
    attempt: int
    """Which call of this entry of the step this is: rises with every retry and every repetition after a crash."""
    timeout_ms: int
    """What is left of the step's time."""
    flow_name: str
    """"", like the two that follow, if no step makes the call."""
    execution_name: str
    step_name: str
    request_id: str | None = None
    """How logs name the call; None for a name made of the key and the attempt."""
    wants_log: bool = False
    """Ask the function for the end of its log."""
    traceparent: str = ""
    """The header of this name, which puts the function's work into the execution's trace; "" if nothing is traced."""

    @property
    def title(self) -> str:
        """The function as people write it: `service/function` or `service.qualifier/function`."""
        service = f"{self.service}.{self.qualifier}" if self.qualifier else self.service
        return f"{service}/{self.function}" if service else self.function


class Replied(msgspec.Struct, frozen=True):
    """The function returned a JSON object."""

    output: JsonObject
    request_id: str = ""
    """Names the call in the logs of both sides: the id that the function answered, else the id that was sent."""


class Reply(msgspec.Struct, frozen=True):
    """A function's reply as received, not yet classified."""

    status: int
    headers: Mapping[str, str]
    """Names are found in any case."""
    body: bytes


class Failed(msgspec.Struct, frozen=True):
    """The call failed; error and cause are what retry, catch and the history see."""

    error: str
    """An error name of `error_names`, or the exception's name that the function reported."""
    cause: str
    is_own: bool = False
    """The server ran out of descriptors or ports, so nothing was sent: no failure of what was to be called."""
    request_id: str = ""
    """As `Replied.request_id`; "" if no reply came."""


class Invoker(Protocol):
    """A way to reach functions; `http.HttpInvoker` is the one in use."""

    async def invoke(self, invocation: Invocation, endpoint: Endpoint) -> Replied | Failed:
        """Make the call. Raises nothing but CancelledError, which ends the call."""
        ...

    async def exchange(self, invocation: Invocation, endpoint: Endpoint) -> Reply | Failed:
        """Make the call; Failed only if no reply came. Raises nothing but CancelledError, which ends the call."""
        ...

    async def send(self, request: WebRequest) -> Reply | Failed:
        """Make the request; Failed only if no reply came. Raises nothing but CancelledError, which ends it."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
