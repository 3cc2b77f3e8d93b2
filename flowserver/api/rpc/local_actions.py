"""Carries out the actions of RPC requests in this process; the front has them carried out over its link instead."""

from collections.abc import Mapping
from functools import partial

from flowserver.api.internal_faults import as_fault
from flowserver.api.large_bodies import page_in_pieces
from flowserver.api.rpc.actions import ACTIONS, LISTS
from flowserver.api.rpc.parameters import Parameters
from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import dump_json_bytes
from flowserver.operations.callers import Caller
from flowserver.operations.operations import Operations


class LocalActions:
    """An `ActionHandler` (see `router`) over the operations."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def __call__(
        self, action: str, parameters: Mapping[str, str], request_id: str, caller: Caller
    ) -> list[bytes]:
        """Carry out an action."""
        try:
            given = Parameters(parameters, action, request_id, caller)
            body = await ACTIONS[action](self._operations, given)
            shown = {**body, "RequestId": request_id}
            if action in LISTS:
                return await self._operations.encoding.run(partial(page_in_pieces, shown))
        except FlowServerError:
            raise
        except Exception as error:
            raise as_fault(error, f"request {request_id}") from error
        return [dump_json_bytes(shown)]
