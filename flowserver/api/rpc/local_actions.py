"""Carries out the actions of RPC requests in this process; the front has them carried out over its link instead."""

from collections.abc import Mapping
from functools import partial

from flowserver.api.internal_faults import as_fault
from flowserver.api.large_bodies import page_in_pieces
from flowserver.api.rpc.actions import ACTIONS, LISTS, Action
from flowserver.api.rpc.parameters import Parameters
from flowserver.base.errors import FlowServerError, ResourceThrottled
from flowserver.base.json_values import JsonObject, dump_json_bytes
from flowserver.operations.callers import Caller
from flowserver.operations.operations import Operations


class LocalActions:
    """An `ActionHandler` (see `router`) over the operations."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def __call__(
        self, action: str, parameters: Mapping[str, str], request_id: str, caller: Caller
    ) -> list[bytes]:
        """Carry out an action, and use up the nonce of a signed request: in its first change, or else at the end.

        A request that is answered with ResourceThrottled before it has changed anything leaves its nonce unused.
        """
        try:
            body = await self._use_nonce_after(ACTIONS[action], Parameters(parameters, action, request_id, caller))
            shown = {**body, "RequestId": request_id}
            if action in LISTS:
                return await self._operations.encoding.run(partial(page_in_pieces, shown))
        except FlowServerError:
            raise
        except Exception as error:
            raise as_fault(error, f"request {request_id}") from error
        return [dump_json_bytes(shown)]

    async def _use_nonce_after(self, action: Action, given: Parameters) -> JsonObject:
        use_nonce = self._operations.access.use_nonce_of_request
        try:
            body = await action(self._operations, given)
        except ResourceThrottled:
            raise
        except Exception:
            await use_nonce()
            raise
        await use_nonce()
        return body
