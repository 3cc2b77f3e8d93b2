"""Asynchronous invocations, as operators of a server see them."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Instant, NextToken, QueryParameters, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.operations.async_invocations import LIMIT_DEFAULT, LIMIT_MAX
from flowserver.operations.function_names import WITHOUT_SERVICE
from flowserver.store.invocations.parking import InvocationHeader

_INVOCATION = {
    "service": "shop",
    "qualifier": "",
    "function": "charge",
    "invocationId": "report-4711",
    "status": "Running",
    "parkedError": "InvocationDamaged: the stored invocation is gone or makes no sense; the server's log says why",
    "createdTime": "2026-01-02T03:04:05.678Z",
    "flow": "order",
    "execution": "order-4711",
    "step": "pay",
}

Submitter = Annotated[str | None, Field(description="The step that submitted it; null if no flow did.")]


class ParkedQuery(QueryParameters):
    """Which page of the parked invocations."""

    limit: Annotated[
        int | None,
        Field(ge=1, le=LIMIT_MAX, description=f"Items on the page, 1 to {LIMIT_MAX}; {LIMIT_DEFAULT} if not given."),
    ] = None
    next_token: Annotated[
        str | None,
        Field(max_length=500, description="`nextToken` of the page before; the listing's beginning if absent."),
    ] = None


class Invocation(Resource):
    """An asynchronous invocation, without its payload and its result: Function Compute's API shows those."""

    model_config = with_examples(_INVOCATION)

    service: Annotated[str, Field(description=f"`{WITHOUT_SERVICE}` for none.")]
    qualifier: Annotated[str, Field(description="Empty for none.")]
    function: str
    invocation_id: Annotated[str, Field(description="Names it among those of its function.")]
    status: Annotated[str, Field(description="The state that it is in, or was parked in.")]
    parked_error: Annotated[
        str | None, Field(description="Why the server has set it aside (parked it); null while all is well.")
    ]
    created_time: Instant
    flow: Submitter
    execution: Submitter
    step: Submitter

    @classmethod
    def of(cls, header: InvocationHeader) -> Self:
        """The invocation."""
        return cls(
            service=header.service or WITHOUT_SERVICE,
            qualifier=header.qualifier,
            function=header.function,
            invocation_id=header.invocation_id,
            status=header.status,
            parked_error=header.parked_error,
            created_time=format_instant(header.created_at),
            flow=header.flow_name or None,
            execution=header.execution_name or None,
            step=header.step_name or None,
        )


class InvocationPage(Resource):
    """Invocations, in no particular order."""

    model_config = with_examples({"invocations": [_INVOCATION], "nextToken": None})

    invocations: list[Invocation]
    next_token: NextToken
