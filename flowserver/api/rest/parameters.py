"""Path parameters and their bounds. A value that no resource can have is refused before any look-up."""

from typing import Annotated

from fastapi import Path

from flowserver.api.rest.models.shared_types import EXECUTION_PATTERN, NAME_PATTERN
from flowserver.base.clock import parse_instant
from flowserver.base.errors import InvalidArgument
from flowserver.base.names import QUEUE_NAME_CHARACTERS_MAX

"""Executions that schedules and flows start have longer names than people may choose."""

SERVICE_PATTERN = r"^(-|[A-Za-z_][A-Za-z0-9_-]{0,127}(\.[A-Za-z0-9_-]{1,128})?)$"

FlowName = Annotated[str, Path(pattern=NAME_PATTERN, description="The flow's name.", examples=["order"])]
ExecutionName = Annotated[
    str,
    Path(pattern=EXECUTION_PATTERN, description="The execution's name.", examples=["order-4711"]),
]
ServiceName = Annotated[
    str,
    Path(
        pattern=SERVICE_PATTERN,
        description="The service, with its qualifier if it has one: `shop` or `shop.prod`. "
        "`-` stands for functions without a service.",
        examples=["shop"],
    ),
]
INVOCATION_PATTERN = r"^[A-Za-z0-9_-]{1,128}$"

InvocationId = Annotated[
    str,
    Path(
        pattern=INVOCATION_PATTERN,
        description="The id of an asynchronous invocation of the function.",
        examples=["report-4711"],
    ),
]
FunctionName = Annotated[str, Path(pattern=NAME_PATTERN, description="The function's name.", examples=["charge"])]
ScheduleName = Annotated[str, Path(pattern=NAME_PATTERN, description="The schedule's name.", examples=["nightly"])]
SecretName = Annotated[str, Path(pattern=NAME_PATTERN, description="The secret's name.", examples=["CHARGE_TOKEN"])]
VERSION_PATTERN = r"^[0-9]{1,9}$"

VersionNumber = Annotated[
    str, Path(pattern=VERSION_PATTERN, description="The number of a published version.", examples=["3"])
]
QUEUE_PATTERN = f"^[A-Za-z0-9][A-Za-z0-9-]{{0,{QUEUE_NAME_CHARACTERS_MAX - 1}}}$"

QueueName = Annotated[str, Path(pattern=QUEUE_PATTERN, description="The queue's name.", examples=["work"])]
TopicName = Annotated[str, Path(pattern=QUEUE_PATTERN, description="The topic's name.", examples=["orders"])]
AliasName = Annotated[str, Path(pattern=NAME_PATTERN, description="The alias's name.", examples=["prod"])]


def instant_of(name: str, text: str | None) -> int | None:
    """The instant (ms) of a request; raises InvalidArgument, which names the field."""
    try:
        return None if text is None else parse_instant(text)
    except ValueError:
        hint = "such as 2026-01-02T03:04:05Z; write a plus sign as %2B"
        raise InvalidArgument(f"`{name}` must be an RFC 3339 instant with an offset, {hint}") from None
