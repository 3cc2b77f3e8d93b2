"""The `context` argument of a handler, with the attributes that the Python runtimes of Function Compute document."""

import logging
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
    logger: logging.Logger = field(default_factory=logging.getLogger)
    stopped: Event = field(default_factory=Event)
    """Set when the call's result is no longer needed: its time is up, or its caller has gone. The cloud has no such
    event, because it ends the process; a thread must be asked to end."""


def make_context(function: HostedFunction, request_id: str, qualifier: str) -> FunctionContext:
    """The context of one call; an empty qualifier means LATEST."""
    return FunctionContext(
        request_id=request_id,
        function=FunctionMeta(function.name, function.handler_name, MEMORY_MB, function.timeout_seconds),
        service=ServiceMeta(function.service, "", "", qualifier or LATEST, LATEST),
    )
