"""Registered functions."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.base import Instant, NextToken, RequestBody, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.invokers.endpoints import TIMEOUT_SECONDS_MAX
from flowserver.operations.functions import TIMEOUT_SECONDS_DEFAULT, WITHOUT_SERVICE
from flowserver.operations.paging import Page
from flowserver.store.functions import FunctionRow

_PUT = {"url": "http://127.0.0.1:9000/charge", "timeoutSeconds": 30, "headers": {"X-Shop": "main"}}
_FUNCTION = {
    "service": "shop",
    "function": "charge",
    **_PUT,
    "createdTime": "2026-01-02T03:04:05.678Z",
    "lastModifiedTime": "2026-01-02T03:04:05.678Z",
}

Url = Annotated[str, Field(description="Where calls are POSTed: http or https, without credentials or fragment.")]
Headers = Annotated[
    dict[str, str],
    Field(description="Sent with every call, in addition to the server's own. Whoever may use the API can read them."),
]


class PutFunction(RequestBody):
    """Where a function's calls go."""

    model_config = with_examples(_PUT)

    url: Url
    timeout_seconds: Annotated[
        int | None,
        Field(
            ge=1,
            le=TIMEOUT_SECONDS_MAX,
            description="Time for one call, unless the step sets its own: "
            f"1 to {TIMEOUT_SECONDS_MAX} seconds; {TIMEOUT_SECONDS_DEFAULT} if absent.",
        ),
    ] = None
    headers: Annotated[Headers, Field(default_factory=dict)]


class Function(Resource):
    """A function that task steps can call."""

    model_config = with_examples(_FUNCTION)

    service: Annotated[str, Field(description=f"May hold a qualifier, `shop.prod`; `{WITHOUT_SERVICE}` for none.")]
    function: str
    url: Url
    timeout_seconds: Annotated[int, Field(description="Time for one call, unless the step sets its own.")]
    headers: Headers
    created_time: Instant
    last_modified_time: Instant

    @classmethod
    def of(cls, row: FunctionRow) -> Self:
        """The registration."""
        return cls(
            service=row.service or WITHOUT_SERVICE,
            function=row.function,
            url=row.url,
            timeout_seconds=row.timeout_seconds,
            headers=row.headers,
            created_time=format_instant(row.created_at),
            last_modified_time=format_instant(row.modified_at),
        )


class FunctionPage(Resource):
    """Functions, ordered by service and name."""

    model_config = with_examples({"functions": [_FUNCTION], "nextToken": "shop/charge"})

    functions: list[Function]
    next_token: NextToken

    @classmethod
    def of(cls, page: Page[FunctionRow]) -> Self:
        """A page of registrations."""
        return cls(functions=[Function.of(row) for row in page.items], next_token=page.next_token)
