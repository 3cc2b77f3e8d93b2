"""The bytes of function calls and of other requests. Pure.

`X-Fc-*` are the names that Function Compute uses in InvokeFunction and towards custom runtimes. A text is sent as JSON,
because the event of a task step is always JSON; bytes are sent as they are. Compressed replies are not requested,
because their true size would be known only after unpacking.
"""

import re
from collections.abc import Mapping

from multidict import CIMultiDict
from yarl import URL

from flowserver.base.request_ids import call_request_id
from flowserver.base.signed_messages import Signer
from flowserver.invokers.calls import Invocation
from flowserver.invokers.web_requests import WebRequest

_BREAKS_A_LINE = re.compile(r"[\r\n\0]")


def request_id(invocation: Invocation) -> str:
    """The id that is sent with the call, for logs on both sides."""
    return invocation.request_id or call_request_id(invocation.idempotency_key, invocation.attempt)


def lasting_head(url: URL, headers: Mapping[str, str], method: str = "POST") -> str:
    """The request line and the header lines that all calls of one endpoint share, among them the endpoint's own.

    Raises ValueError for headers that would not be single lines.
    """
    lines = CIMultiDict({"Host": url.host_port_subcomponent or "", "User-Agent": "flowserver", "Accept": "*/*"})
    lines.update(headers)
    lines["Accept-Encoding"] = "identity"
    _check_lines("".join([*lines.keys(), *lines.values()]))
    fields = "".join([f"{name}: {value}\r\n" for name, value in lines.items()])
    return f"{method} {url.raw_path_qs} HTTP/1.1\r\n{fields}"


def write_request(head: str, invocation: Invocation, signer: Signer | None = None) -> bytes:
    """The whole request for one call, after the `lasting_head` of its endpoint. Its signature is for this moment.

    `check_endpoint` keeps the endpoint's headers apart from the ones made here. Raises ValueError for an invocation
    that cannot be sent: a name with a line break, text that is not valid Unicode.
    """
    call = invocation
    optional = _optional_lines(call)
    _check_lines(
        f"{call.idempotency_key}{call.flow_name}{call.execution_name}{call.step_name}{call.function}"
        f"{call.service}{call.qualifier}{call.invocation_id}{call.request_id}"
    )
    kind, body = ("json", call.event.encode()) if isinstance(call.event, str) else ("octet-stream", call.event)
    fields = (
        f"Content-Type: application/{kind}\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Idempotency-Key: {call.idempotency_key}\r\n"
        f"X-Flowserver-Attempt: {call.attempt}\r\n"
        f"X-Fc-Request-Id: {request_id(call)}\r\n"
        "X-Fc-Invocation-Type: Sync\r\n"  # also if asynchronous: accepting the call is not doing it
        f"X-Fc-Function-Name: {call.function}{optional}\r\n"
    )
    signed = "" if signer is None else _signature(signer, call.idempotency_key, body)
    return f"{head}{fields}{signed}\r\n".encode() + body


def write_web_request(request: WebRequest, signer: Signer | None = None) -> bytes:
    """A whole request that calls no function. Raises ValueError for headers that would not be single lines."""
    head = lasting_head(URL(request.url), request.headers, request.method)
    signed = "" if signer is None or not request.message_id else _signature(signer, request.message_id, request.body)
    return f"{head}{signed}Content-Length: {len(request.body)}\r\n\r\n".encode() + request.body


def _signature(signer: Signer, message_id: str, body: bytes) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in signer.headers_of(message_id, body).items()])


def _optional_lines(call: Invocation) -> str:
    lines = ""
    if call.step_name:
        lines += (
            f"\r\nX-Flowserver-Flow: {call.flow_name}"
            f"\r\nX-Flowserver-Execution: {call.execution_name}"
            f"\r\nX-Flowserver-Step: {call.step_name}"
        )
    if call.service:
        lines += f"\r\nX-Fc-Service-Name: {call.service}"
    if call.qualifier:
        lines += f"\r\nX-Fc-Qualifier: {call.qualifier}"
    if call.invocation_id:
        lines += f"\r\nX-Fc-Stateful-Async-Invocation-Id: {call.invocation_id}"
    if call.traceparent:
        lines += f"\r\ntraceparent: {call.traceparent}"
    if call.wants_log:
        lines += "\r\nX-Fc-Log-Type: Tail"
    return lines


def _check_lines(values: str) -> None:
    """Refuse line breaks in headers: a line break could begin another header, or another request."""
    if _BREAKS_A_LINE.search(values):
        raise ValueError("a header would hold a line break")
