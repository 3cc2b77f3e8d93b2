"""Errors as RFC 9457 describes them."""

from typing import Annotated

from pydantic import Field

from flowserver.api.rest.models.definition_checks import Diagnostic
from flowserver.api.rest.models.shared_types import Resource, with_examples


class Problem(Resource):
    """Why a request was not served (RFC 9457). Branch on `code`; the other texts are for people."""

    model_config = with_examples(
        {
            "type": "urn:flowserver:problem:FlowNotExists",
            "title": "The flow does not exist.",
            "status": 404,
            "detail": "flow order does not exist",
            "code": "FlowNotExists",
            "requestId": "5e2f8b0c-7b7a-4b57-9d3c-2f6d3b6a9c11",
        }
    )

    type: Annotated[str, Field(description="`urn:flowserver:problem:` and the code.")]
    title: Annotated[str, Field(description="What the code means.")]
    status: Annotated[int, Field(description="The HTTP status.")]
    detail: Annotated[str, Field(description="What is wrong with this request.")]
    code: Annotated[str, Field(description="The error's name, the same in every API of this server.")]
    request_id: Annotated[str, Field(description="Names this request in the server's log.")]
    diagnostics: Annotated[
        list[Diagnostic] | None, Field(description="All that was found, if a definition was refused; else absent.")
    ] = None
    redrive_instead: Annotated[
        str | None,
        Field(description="With the code `ExecutionEndReported` FLOW/NAME of the execution to redrive; else absent."),
    ] = None
