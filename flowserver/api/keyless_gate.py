"""Refuses what is forwarded to a server without access keys, before anything of the request is read.

Every frame around an API, and that around the console's files, has this gate; the rules are in `keyless_access`.
"""

from collections.abc import Callable, Collection

from starlette.types import Scope

from flowserver.api.internal_faults import as_fault
from flowserver.api.keyless_access import refusal_of_stranger
from flowserver.base.errors import FlowServerError
from flowserver.operations.access import AccessOperations


class KeylessGate:
    """Looks at the headers first, so that requests of local programs wait for nothing."""

    def __init__(self, access: Callable[[], AccessOperations], allowed_hosts: Collection[str]) -> None:
        """`access` is called once there is a request that is not a local program's."""
        self._access = access
        self._allowed_hosts = allowed_hosts

    async def refusal(self, scope: Scope) -> FlowServerError | None:
        """Why the HTTP request is refused; None if it may go on to the check of its caller.

        A server with keys refuses nothing here. While a server cannot find out whether it has keys, it refuses.
        """
        refusal = refusal_of_stranger(scope, self._allowed_hosts)
        if refusal is None:
            return None
        try:
            access = self._access()
            if not await access.is_keyless():
                return None
            access.refusals.note(refusal)
            return refusal
        except FlowServerError as error:
            return error
        except Exception as error:
            return as_fault(error, "looking for access keys")
