"""A typed client of a flowserver, blocking and asynchronous, over its REST API.

with Client("http://127.0.0.1:8080") as client:
    execution = client.start("order", {"orderId": 4711})
    print(client.wait("order", execution.name, timeout_seconds=60).output)

`AsyncClient` has the same methods as coroutines. Errors are those of `flowserver.client.errors`, results those of
`flowserver.client.results`. Nothing of the server is imported.
"""

from typing import TYPE_CHECKING, Any, Final

from flowserver.base.lazy_import import load
from flowserver.client.errors import (
    ClientError,
    Conflict,
    Invalid,
    NameInvalid,
    NotFound,
    NotPermitted,
    ServerFault,
    Throttled,
    Unreachable,
    Unreadable,
    WaitedTooLong,
)
from flowserver.client.results import (
    Alias,
    DefinitionGraph,
    DefinitionTests,
    Event,
    Execution,
    Flow,
    Function,
    Invocation,
    Iteration,
    ManyRedriven,
    Queue,
    RedrivePlan,
    Schedule,
    Secret,
    Step,
    Task,
    Topic,
    Version,
)

if TYPE_CHECKING:
    from flowserver.client.asynchronous import AsyncClient
    from flowserver.client.blocking import Client

_CLIENTS: Final = {
    "AsyncClient": "flowserver.client.asynchronous:AsyncClient",
    "Client": "flowserver.client.blocking:Client",
}


def __getattr__(name: str) -> Any:
    """A client, loaded when it is asked for: with asyncio, which blocking programs do without, and with httpx, which
    takes longer to load than a command that sends no request.
    """
    if name not in _CLIENTS:
        raise AttributeError(name)
    return load(_CLIENTS[name])


__all__ = [
    "Alias",
    "AsyncClient",
    "Client",
    "ClientError",
    "Conflict",
    "DefinitionGraph",
    "DefinitionTests",
    "Event",
    "Execution",
    "Flow",
    "Function",
    "Invalid",
    "Invocation",
    "Iteration",
    "ManyRedriven",
    "NameInvalid",
    "NotFound",
    "NotPermitted",
    "Queue",
    "RedrivePlan",
    "Schedule",
    "Secret",
    "ServerFault",
    "Step",
    "Task",
    "Throttled",
    "Topic",
    "Unreachable",
    "Unreadable",
    "Version",
    "WaitedTooLong",
]
