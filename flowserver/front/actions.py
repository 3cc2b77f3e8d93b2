"""Actions of RPC requests: the front checks their callers, the engine carries them out."""

from collections.abc import Mapping, Sequence
from typing import Any

from flowserver.api.rpc.router import ActionHandler
from flowserver.base.nonces import Nonce
from flowserver.base.request_context import RequestContext, present_request
from flowserver.base.span_ids import read_traceparent, write_traceparent
from flowserver.front.link import Handler, Link
from flowserver.operations.callers import Caller

ACT = "act"
"""What the engine's side calls carrying out an action."""


def distant_actions(link: Link) -> ActionHandler:
    """The front's side: an `ActionHandler` that the engine carries out."""

    async def act(action: str, parameters: Mapping[str, str], request_id: str, caller: Caller) -> list[bytes]:
        request = present_request()
        remote = "" if request is None else request.remote
        who = (caller.role, caller.flows, caller.label, caller.key_id)
        span = "" if request is None or request.span is None else write_traceparent(request.span)
        nonce = None if request is None or request.nonce is None else (request.nonce.text, request.nonce.expires_at)
        pieces: list[bytes]
        pieces, links = await link.call(ACT, action, parameters, request_id, remote, who, span, nonce)
        if links and request is not None:
            request.linked_spans = tuple(filter(None, map(read_traceparent, links)))
        return pieces

    return act


def handlers_of_actions(carry_out: ActionHandler) -> Mapping[str, Handler]:
    """The engine's side."""

    async def act(
        action: str,
        parameters: Mapping[str, str],
        request_id: str,
        remote: str,
        who: Sequence[Any],
        span: str,
        nonce: Sequence[Any] | None,
    ) -> tuple[list[bytes], list[str]]:
        caller = Caller(*who)
        with RequestContext(request_id, remote) as request:
            request.api, request.route = "RPC", action
            request.key_id, request.key_label = caller.key_id, caller.label or ""
            request.span = read_traceparent(span) if span else None
            request.nonce = None if nonce is None else Nonce(caller.key_id, *nonce)
            pieces = await carry_out(action, parameters, request_id, caller)
            return pieces, [write_traceparent(each) for each in request.linked_spans]

    return {ACT: act}
