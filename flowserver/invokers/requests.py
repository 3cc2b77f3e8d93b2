"""The request headers that tell a function about its call. Pure."""

from uuid import UUID, uuid5

from flowserver.invokers.invocation import Endpoint, Invocation

_REQUEST_IDS = UUID("7c1b4d0e-5d1f-5c5e-9b0a-3f1d2f6f0a11")
"""Name space of the request ids made from idempotency keys; any fixed value does."""


def request_id(invocation: Invocation) -> str:
    """A UUID for logs on both sides; the same whenever the same attempt is sent again."""
    return str(uuid5(_REQUEST_IDS, f"{invocation.idempotency_key}/{invocation.attempt}"))


def request_headers(invocation: Invocation, endpoint: Endpoint) -> dict[str, str]:
    """The endpoint's own headers and ours; `check_endpoint` keeps the two sets apart.

    `X-Fc-*` are the names that Function Compute uses in InvokeFunction and towards custom runtimes. The body is sent
    as JSON, because the event of a task step always is; compressed replies are not asked for, because their true
    size would be known only after unpacking.
    """
    headers = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "Idempotency-Key": invocation.idempotency_key,
        "X-Flowserver-Attempt": str(invocation.attempt),
        "X-Flowserver-Flow": invocation.flow_name,
        "X-Flowserver-Execution": invocation.execution_name,
        "X-Flowserver-Step": invocation.step_name,
        "X-Fc-Request-Id": request_id(invocation),
        "X-Fc-Invocation-Type": "Async" if invocation.asynchronous else "Sync",
        "X-Fc-Function-Name": invocation.function,
    }
    if invocation.service:
        headers["X-Fc-Service-Name"] = invocation.service
    if invocation.qualifier:
        headers["X-Fc-Qualifier"] = invocation.qualifier
    if invocation.invocation_id:
        headers["X-Fc-Stateful-Async-Invocation-Id"] = invocation.invocation_id
    return {**endpoint.headers, **headers}
