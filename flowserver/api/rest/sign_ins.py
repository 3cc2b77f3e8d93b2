"""/v1/sign-ins: an access key for the code of a sign-in link."""

from starlette.responses import Response

from flowserver.api.rest.answers import answer
from flowserver.api.rest.auth import LinkCode, Unauthenticated, take_code
from flowserver.api.rest.models.server import NewKey
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import AccessDenied

router = rest_router("", "server", check=take_code)


@router.post(
    "/sign-ins",
    summary="Use a sign-in link",
    response_model=NewKey,
    status_code=201,
    response_description="The key is made, and the link used up.",
    responses=problems(),
)
async def sign_in(operations: Ops, code: LinkCode) -> Response:
    """Make the access key of a sign-in link. The bearer token of this request is the code in the link, after the `#`;
    it is good for this call alone, and once.

    `flowserver keys create --sign-in-link` makes such links; `flowserver serve` shows one while there is no key.
    """
    try:
        new = await operations.sign_in_links.redeem(code)
    except AccessDenied as error:
        raise Unauthenticated(error.message, 'Bearer error="invalid_token"') from None
    return answer(NewKey.of(new), 201, {"Cache-Control": "no-store"})
