"""Registered functions."""

from collections.abc import Sequence
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
from flowserver.base.json_values import JsonObject
from flowserver.invokers.endpoint_rules import HOOK_SECONDS_DEFAULT, HOOK_SECONDS_MAX, TIMEOUT_SECONDS_MAX
from flowserver.invokers.function_health import OTHER_ERRORS, WINDOW_SECONDS
from flowserver.operations.function_names import WITHOUT_SERVICE
from flowserver.operations.functions import PLACES_MAX, TIMEOUT_SECONDS_DEFAULT, FunctionNumbers, FunctionWarning
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

_WARNING: JsonObject = {
    "id": "refused-address",
    "severity": "warning",
    "message": "calls of this url will fail: the server does not call private, link-local, metadata, multicast or "
    "unspecified addresses",
}

_HEALTH: JsonObject = {
    "service": "shop",
    "function": "charge",
    "calls": 120,
    "errors": 2,
    "errorsByName": {"FC.Unknown": 2},
    "p50Ms": 12.8,
    "p95Ms": 46.0,
    "p99Ms": 79.5,
    "inFlight": 1,
}
_SINCE: JsonObject = {"node": "5f0c2a8e", "sinceTime": "2026-01-02T03:04:05.678Z", "windowSeconds": WINDOW_SECONDS}

Url = Annotated[
    str,
    Field(
        description="Where calls are POSTed: http or https, without credentials or fragment. Its path and query may "
        "refer to secrets: `${secret:NAME}`."
    ),
]
Headers = Annotated[
    dict[str, str],
    Field(
        description="Sent with every call, in addition to the server's own. Replies show `(hidden)` in place of each "
        "value, but for references to secrets, `${secret:NAME}`. A request that repeats it keeps the stored value, "
        "unless a URL has another scheme, host or port."
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


Node = Annotated[str, Field(description="The id of the node that answers; others have numbers of their own.")]
Since = Annotated[Instant, Field(description="When the node began to count: at its start.")]
Window = Annotated[
    int, Field(description="The numbers are of the last so many seconds, or since then if that is less.")
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


class FunctionFinding(Resource):
    """What is doubtful about a registration."""

    model_config = with_examples(_WARNING)

    id: Annotated[str, Field(description="`refused-address`: the settings refuse calls of a URL; or `unknown-secret`.")]
    severity: Annotated[str, Field(description="`warning`.")]
    message: str


class DeployedFunction(Function):
    """A function, and what is doubtful about its registration."""

    model_config = with_examples({**_FUNCTION, "warnings": []})

    warnings: list[FunctionFinding]

    @classmethod
    def with_warnings(cls, row: FunctionRow, found: Sequence[FunctionWarning]) -> Self:
        """The registration and the warnings."""
        warnings = [FunctionFinding(id=each.id, severity="warning", message=each.message) for each in found]
        return cls(**vars(Function.of(row)), warnings=warnings)


class FunctionHealth(Resource):
    """How a function fares: the calls that one node has made in the last minutes, each attempt a call."""

    model_config = with_examples(_HEALTH)

    service: Annotated[str, Field(description=f"`{WITHOUT_SERVICE}` for none.")]
    function: str
    calls: int
    errors: Annotated[int, Field(description="Calls that failed, by the function's doing or on the way.")]
    errors_by_name: Annotated[
        dict[str, int], Field(description=f"The most frequent first; `{OTHER_ERRORS}` for names beyond the bound.")
    ]
    p50_ms: Annotated[float | None, Field(description="Half of the calls took up to this, within 20 %; null for none.")]
    p95_ms: float | None
    p99_ms: float | None
    in_flight: Annotated[int, Field(description="Calls that are made now.")]

    @classmethod
    def of(cls, numbers: FunctionNumbers) -> Self:
        """The numbers."""
        health = numbers.health
        return cls(
            service=numbers.service or WITHOUT_SERVICE,
            function=numbers.function,
            calls=health.calls,
            errors=health.errors,
            errors_by_name=health.errors_by_name,
            p50_ms=health.p50_ms,
            p95_ms=health.p95_ms,
            p99_ms=health.p99_ms,
            in_flight=health.in_flight,
        )


class OneFunctionHealth(FunctionHealth):
    """How a function fares on the node that answers."""

    model_config = with_examples({**_HEALTH, **_SINCE})

    node: Node
    since_time: Since
    window_seconds: Window


class FunctionHealthPage(Resource):
    """Functions that the node which answers has called, by service and name."""

    model_config = with_examples({"functions": [_HEALTH], **_SINCE, "nextToken": None})

    functions: list[FunctionHealth]
    node: Node
    since_time: Since
    window_seconds: Window
    next_token: NextToken


class FunctionPage(Resource):
    """Functions, ordered by service and name."""

    model_config = with_examples({"functions": [_FUNCTION], "nextToken": "shop/charge"})

    functions: list[Function]
    next_token: NextToken
