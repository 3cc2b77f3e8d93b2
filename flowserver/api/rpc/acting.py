"""What an RPC request orders, done: its action carried out, its answer as the bytes that are sent."""

from collections.abc import Awaitable, Callable, Mapping

from flowserver.api.faults import as_fault
from flowserver.api.rpc.actions import ACTIONS
from flowserver.api.rpc.parameters import Parameters
from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import JsonObject, dump_json
from flowserver.operations.operations import Operations

Act = Callable[[str, Mapping[str, str], str], Awaitable[bytes]]
"""Carry out one of ACTIONS with these parameters, under a request id; a request that fails is a FlowServerError."""


class Acting:
    """An `Act` over the operations."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def __call__(self, action: str, parameters: Mapping[str, str], request_id: str) -> bytes:
        """Carry out an action."""
        try:
            body = await ACTIONS[action](self._operations, Parameters(parameters))
        except FlowServerError:
            raise
        except Exception as error:
            raise as_fault(error, f"request {request_id}") from error
        return written({**body, "RequestId": request_id})


def written(body: JsonObject) -> bytes:
    """An answer's JSON, whatever texts it holds."""
    return dump_json(body).encode("utf-8", "replace")
