"""What an RPC request orders, done: its action carried out, its answer as the bytes that are sent."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial

from flowserver.api.faults import as_fault
from flowserver.api.rpc.actions import ACTIONS, LISTS
from flowserver.api.rpc.parameters import Parameters
from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import Json, JsonObject, dump_json
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
            shown = {**body, "RequestId": request_id}
            if action in LISTS:
                return await self._operations.encoding.run(partial(written_page, shown))
        except FlowServerError:
            raise
        except Exception as error:
            raise as_fault(error, f"request {request_id}") from error
        return written(shown)


def written(body: JsonObject) -> bytes:
    """An answer's JSON, whatever texts it holds."""
    return _written(body)


def written_page(body: JsonObject) -> bytes:
    """The same, made item by item: no other thread runs while one document is written."""
    return b"{" + b",".join(_members(body)) + b"}"


def _members(body: JsonObject) -> Iterator[bytes]:
    for name, value in body.items():
        shown = b"[" + b",".join(map(_written, value)) + b"]" if isinstance(value, list) else _written(value)
        yield _written(name) + b":" + shown


def _written(value: Json) -> bytes:
    return dump_json(value).encode("utf-8", "replace")
