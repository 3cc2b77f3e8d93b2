"""Registered functions."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import (
    Instant,
    NextToken,
    QueryParameters,
    RequestBody,
    Resource,
    with_examples,
)
from flowserver.base.clock import format_instant
from flowserver.base.hidden_values import HIDDEN
from flowserver.invokers.endpoint_rules import HOOK_SECONDS_DEFAULT, HOOK_SECONDS_MAX, TIMEOUT_SECONDS_MAX
from flowserver.operations.function_names import WITHOUT_SERVICE
from flowserver.operations.functions import PLACES_MAX, TIMEOUT_SECONDS_DEFAULT
from flowserver.operations.hidden_headers import hide_values
from flowserver.store.functions import FunctionRow

_PUT = {
    "url": "http://127.0.0.1:9000/charge",
    "timeoutSeconds": 30,
    "headers": {"X-Shop": "main"},
    "initializeUrl": "http://127.0.0.1:9000/charge/initialize",
    "preStopUrl": "http://127.0.0.1:9000/charge/pre-stop",
    "hookSeconds": 5,
    "concurrencyMax": 4,
    "waitingMax": 100,
}
_FUNCTION = {
    "service": "shop",
    "function": "charge",
    **_PUT,
    "headers": {"X-Shop": HIDDEN},
    "createdTime": "2026-01-02T03:04:05.678Z",
    "lastModifiedTime": "2026-01-02T03:04:05.678Z",
}

Url = Annotated[str, Field(description="Where calls are POSTed: http or https, without credentials or fragment.")]
Headers = Annotated[
    dict[str, str],
    Field(
        description="Sent with every call, in addition to the server's own. Replies show `(hidden)` in place of each "
        "value. A request that repeats it keeps the stored value, unless a URL has another scheme, host or port."
    ),
]
InitializeUrl = Annotated[
    str | None, Field(description="POSTed to once on each node, before its first call of this registration.")
]
PreStopUrl = Annotated[
    str | None, Field(description="Asked (GET) when an asynchronous invocation that runs is stopped, before it ends.")
]
HookSeconds = Annotated[
    int | None,
    Field(
        ge=1,
        le=HOOK_SECONDS_MAX,
        description=f"Time for each of the two: 1 to {HOOK_SECONDS_MAX} seconds; {HOOK_SECONDS_DEFAULT} if absent.",
    ),
]
ConcurrencyMax = Annotated[
    int | None,
    Field(ge=1, le=PLACES_MAX, description="Calls made at once, shared among the nodes; without a bound if absent."),
]
WaitingMax = Annotated[
    int | None,
    Field(ge=0, le=PLACES_MAX, description="Calls that wait for one of these on each node; further ones are refused."),
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
    initialize_url: InitializeUrl = None
    pre_stop_url: PreStopUrl = None
    hook_seconds: HookSeconds = None
    concurrency_max: ConcurrencyMax = None
    waiting_max: WaitingMax = None


class PutFunctionQuery(QueryParameters):
    """What a caller may add to a registration."""

    dry_run: Annotated[
        bool,
        Field(
            description="Change nothing. The reply shows what would be registered, with the present `lastModifiedTime` "
            "if the function is registered so already."
        ),
    ] = False


class Function(Resource):
    """A function that task steps can call."""

    model_config = with_examples(_FUNCTION)

    service: Annotated[str, Field(description=f"May hold a qualifier, `shop.prod`; `{WITHOUT_SERVICE}` for none.")]
    function: str
    url: Url
    timeout_seconds: Annotated[int, Field(description="Time for one call, unless the step sets its own.")]
    headers: Headers
    initialize_url: InitializeUrl
    pre_stop_url: PreStopUrl
    hook_seconds: HookSeconds
    concurrency_max: ConcurrencyMax
    waiting_max: WaitingMax
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
            headers=hide_values(row.headers),
            initialize_url=row.initialize_url,
            pre_stop_url=row.pre_stop_url,
            hook_seconds=row.hook_seconds,
            concurrency_max=row.concurrency_max,
            waiting_max=row.waiting_max,
            created_time=format_instant(row.created_at),
            last_modified_time=format_instant(row.modified_at),
        )


class FunctionPage(Resource):
    """Functions, ordered by service and name."""

    model_config = with_examples({"functions": [_FUNCTION], "nextToken": "shop/charge"})

    functions: list[Function]
    next_token: NextToken
