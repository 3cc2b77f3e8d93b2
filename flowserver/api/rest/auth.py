"""Who may use REST: bearers of a token, or, while the server has no access keys, programs on this machine."""

from functools import partial
from typing import Annotated, Any

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from flowserver.api.keyless_access import check_page
from flowserver.api.rest.needs import NEEDS
from flowserver.base.errors import AccessDenied
from flowserver.base.request_context import set_execution, set_route
from flowserver.operations.callers import EVERYTHING, Caller

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="bearer",
    description="The token that `flowserver keys create` shows once. While the server has no keys it needs none.",
)


class Unauthenticated(AccessDenied):
    """The bearer token is missing, unknown or disabled.

    Its status is 401, as RFC 6750 requires for a missing token and for an invalid one; 403 is reserved for
    requests that no token could help. `challenge` is the WWW-Authenticate header to send.
    """

    status = 401

    def __init__(self, message: str | None = None, challenge: str = "Bearer") -> None:
        super().__init__(message or "send the header `Authorization: Bearer TOKEN`")
        self.challenge = challenge


async def authorise(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> None:
    """Raises Unauthenticated; AccessDenied for a caller that may not make this call, or calls a server without keys
    from elsewhere.

    `request.state.caller` is the caller; `request.state.check` asks once more, and raises AccessDenied.
    """
    state: Any = request.app.state
    route = request.scope["route"]
    name = route.name
    set_route("REST", name, route.path)
    access = state.operations.access
    if await access.is_open():
        headers = request.headers
        check_page(headers.get("origin"), headers.get("sec-fetch-site"), state.settings.allowed_hosts)
        request.state.caller = EVERYTHING
        request.state.check = access.check_open
        return
    if credentials is None:
        raise Unauthenticated
    token = credentials.credentials
    try:
        caller = request.state.caller = await access.bearer(token)
    except AccessDenied as error:
        raise Unauthenticated(error.message, 'Bearer error="invalid_token"') from None
    need = NEEDS[name]
    flow = request.path_params.get(need.flow) if isinstance(need.flow, str) else None
    set_execution(request.path_params.get("execution"))
    caller.require(need, flow)
    request.state.check = partial(access.admit_bearer, token, need, flow)


async def take_code(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> None:
    """In the place of `authorise` for the call whose bearer token is the code of a sign-in link, which only the call
    itself can check. Raises Unauthenticated without one; AccessDenied as `authorise`.
    """
    state: Any = request.app.state
    route = request.scope["route"]
    set_route("REST", route.name, route.path)
    if await state.operations.access.is_keyless():
        headers = request.headers
        check_page(headers.get("origin"), headers.get("sec-fetch-site"), state.settings.allowed_hosts)
    if credentials is None:
        raise Unauthenticated("send the code of a sign-in link: `Authorization: Bearer CODE`")
    request.state.code = credentials.credentials


async def _code(request: Request) -> str:
    code: str = request.state.code
    return code


LinkCode = Annotated[str, Depends(_code)]
"""The code of a sign-in link, as a route's parameter."""


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


Who = Annotated[Caller, Depends(_caller)]
"""The caller, as a route's parameter."""
