"""InvokeFunction: bytes in, bytes out."""

import codecs
import time

from flowserver.api.fc.answers import JSON_TYPE, Answer, refusal
from flowserver.api.fc.requests import FcRequest
from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import InvalidJson, load_json
from flowserver.invokers.outcomes import Returned
from flowserver.operations.operations import Operations

BYTES_TYPE = "application/octet-stream"
ID_HEADER = "x-fc-stateful-async-invocation-id"


async def invoke(operations: Operations, request: FcRequest, names: dict[str, str]) -> Answer:
    """Call a function and answer its result; or accept an asynchronous invocation and answer 202."""
    kind = _one_of(request, "x-fc-invocation-type", ("Sync", "Async"))
    log_type = _one_of(request, "x-fc-log-type", ("None", "Tail"))
    if kind == "Async":
        return await _submit(operations, request, names)
    began_at = time.monotonic()
    payload, wants_log = await request.body(), log_type == "Tail"
    work = operations.invocations.invoke(**names, payload=payload, request_id=request.request_id, wants_log=wants_log)
    result = await request.unless_abandoned(work)
    if not isinstance(result, Returned):
        return refusal(result.status, result.code, result.message)
    return _returned(result, names["qualifier"], round((time.monotonic() - began_at) * 1000))


async def _submit(operations: Operations, request: FcRequest, names: dict[str, str]) -> Answer:
    row = await operations.async_invocations.submit(
        **names,
        payload=await request.body(),
        request_id=request.request_id,
        invocation_id=request.headers.get(ID_HEADER) or None,
    )
    return Answer(202, content_type=BYTES_TYPE, headers={ID_HEADER: row.invocation_id})


def _returned(result: Returned, qualifier: str, duration_ms: int) -> Answer:
    headers = {
        "x-fc-invocation-duration": str(duration_ms),
        "x-fc-invocation-service-version": qualifier or "LATEST",
    }
    if result.log:
        headers["x-fc-log-result"] = result.log
    if not result.function_error:
        return Answer(200, result.payload, BYTES_TYPE, headers)
    headers["x-fc-error-type"] = result.function_error
    # Node's SDK parses what is called JSON, and so fails of what is not.
    return Answer(200, result.payload, JSON_TYPE if _is_json(result.payload) else BYTES_TYPE, headers)


def _one_of(request: FcRequest, header: str, allowed: tuple[str, ...]) -> str:
    """The header's value, the first of the allowed ones if it did not come; raises InvalidArgument."""
    given = request.headers.get(header) or allowed[0]
    if given not in allowed:
        raise InvalidArgument(f"{header} must be {' or '.join(allowed)}")
    return given


def _is_json(payload: bytes) -> bool:
    if payload.startswith(codecs.BOM_UTF8):
        return False  # JavaScript's JSON.parse refuses it
    try:
        load_json(payload)
    except InvalidJson:
        return False
    return True
