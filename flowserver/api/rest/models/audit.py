"""The audit: what was done by whom, and what was refused."""

from typing import Annotated, Self

from pydantic import Field

from flowserver.api.rest.models.shared_types import Instant, NextToken, PageQuery, Resource, with_examples
from flowserver.base.clock import format_instant
from flowserver.store.audit import AuditRecord as Record

_RECORD = {
    "id": "019b1f2e7a10-9c1f0a2b3c4d5e6f",
    "time": "2026-01-02T03:04:05.678Z",
    "key": "FLS0123456789ABCDEF0123",
    "caller": "deploy",
    "api": "REST",
    "address": "192.0.2.7",
    "requestId": "5a6f6a1e-8a3c-4a8e-9f0e-1a2b3c4d5e6f",
    "operation": "flows.delete",
    "object": "flows/order",
    "result": "ok",
    "count": 1,
    "lastTime": None,
}


class AuditQuery(PageQuery):
    """Which records, and which page of them."""

    key: Annotated[str | None, Field(max_length=128, description="Only those of the key with this id.")] = None
    operation: Annotated[
        str | None, Field(max_length=128, description="Only this operation, such as `flows.delete`.")
    ] = None
    object: Annotated[
        str | None,
        Field(max_length=512, description="Only this object and what is part of it, such as `flows/order`."),
    ] = None
    result: Annotated[
        str | None, Field(max_length=128, description="Only this result: `ok`, or the code of an error.")
    ] = None
    from_: Annotated[
        str | None, Field(alias="from", max_length=64, description="Only records of this RFC 3339 instant or later.")
    ] = None
    to: Annotated[str | None, Field(max_length=64, description="Only records before this RFC 3339 instant.")] = None


class AuditRecord(Resource):
    """One operation, or refusals of one kind."""

    model_config = with_examples(_RECORD)

    id: str
    time: Annotated[Instant, Field(description="When it began; of refusals, when the first was.")]
    key: Annotated[str, Field(description="The id of the caller's key; empty without one.")]
    caller: Annotated[str, Field(description="The label of the key, or of a command, the user who ran it.")]
    api: Annotated[str, Field(description="REST, RPC, FC or MNS, or CLI for a command on the server's machine.")]
    address: Annotated[
        str, Field(description="The address of the client, or of the proxy before the server; of a command, the host.")
    ]
    request_id: Annotated[str, Field(description="The request's id, as in its answer and in the log.")]
    operation: Annotated[
        str, Field(description="What was done. Of a refusal, the permission that was missing, or `authenticate`.")
    ]
    object: Annotated[str, Field(description="The path of what it was done to; empty if it is not known.")]
    result: Annotated[
        str | None,
        Field(description="`ok`, or the code of the error; null while it is under way, or if the server ended in it."),
    ]
    count: Annotated[int, Field(description="How many refusals it stands for.")]
    last_time: Annotated[Instant | None, Field(description="When the last of several refusals was.")]

    @classmethod
    def of(cls, record: Record) -> Self:
        """The record."""
        return cls(
            id=record.record_id,
            time=format_instant(record.at),
            key=record.key_id,
            caller=record.label,
            api=record.api,
            address=record.remote,
            request_id=record.request_id,
            operation=record.operation,
            object=record.object,
            result=record.result or None,
            count=record.count,
            last_time=None if record.until is None else format_instant(record.until),
        )


class AuditPage(Resource):
    """Records, the newest first."""

    model_config = with_examples({"records": [_RECORD], "nextToken": None})

    records: list[AuditRecord]
    next_token: NextToken
