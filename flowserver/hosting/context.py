"""The `context` argument of a handler, with the attributes that the Python runtimes of Function Compute document."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event

from flowserver.hosting.functions import HostedFunction

MEMORY_MB = 128
LATEST = "LATEST"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Temporary keys of the function's role; empty here, where there is no role."""

    access_key_id: str = ""
    access_key_secret: str = ""
    security_token: str = ""


@dataclass(frozen=True, slots=True)
class FunctionMeta:
    """The called function; `memory` in MB, `timeout` in seconds."""

    name: str
    handler: str
    memory: int
    timeout: int


@dataclass(frozen=True, slots=True)
class ServiceMeta:
    """The service that the function belongs to."""

    name: str
    log_project: str
    log_store: str
    qualifier: str
    version_id: str


@dataclass(frozen=True, slots=True)
class FunctionContext:
    """The facts about a call that its handler can read."""

    request_id: str
    function: FunctionMeta
    service: ServiceMeta
    credentials: Credentials = Credentials()
    region: str = ""
    account_id: str = ""
    flow_name: str = ""
    """"", like the four that follow, if no step of a flow makes the call. The cloud has none of the five."""
    execution_name: str = ""
    step_name: str = ""
    idempotency_key: str = ""
    """The same for all attempts of one entry of the step."""
    attempt: int = 0
    """1, 2, 3 …: rises with each call of that entry."""
    logger: logging.Logger = field(default_factory=logging.getLogger)
    stopped: Event = field(default_factory=Event)
    """Set when the call's result is no longer needed: its time is up, or its caller has gone. The cloud has no such
    event, because it ends the process; a thread must be asked to end."""


def make_context(
    function: HostedFunction, request_id: str, qualifier: str, headers: Mapping[str, str] | None = None
) -> FunctionContext:
    """The context of a call with these headers; an empty qualifier means LATEST."""
    given = headers or {}
    attempt = given.get("x-flowserver-attempt", "")
    return FunctionContext(
        request_id=request_id,
        function=FunctionMeta(function.name, function.handler_name, MEMORY_MB, function.timeout_seconds),
        service=ServiceMeta(function.service, "", "", qualifier or LATEST, LATEST),
        flow_name=given.get("x-flowserver-flow", ""),
        execution_name=given.get("x-flowserver-execution", ""),
        step_name=given.get("x-flowserver-step", ""),
        idempotency_key=given.get("idempotency-key", ""),
        attempt=int(attempt) if attempt.isdecimal() and attempt.isascii() and len(attempt) < 10 else 0,
    )
