"""Path parameters and their bounds. A value that no resource can have is refused before any look-up."""

from typing import Annotated

from fastapi import Path

from flowserver.api.rest.models.base import NAME_PATTERN

EXECUTION_PATTERN = r"^[A-Za-z0-9_:-]{1,165}$"
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
