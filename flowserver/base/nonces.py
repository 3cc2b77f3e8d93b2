"""Nonces of signed requests: each is used once, so a request that was read in transit cannot be repeated.

A nonce is committed in one transaction with the first change that its request submits (`RequestContext.nonce`), and at
the latest before the request is answered. So what a request has changed is durable only together with its nonce.

Exception: an execution that the server can neither read nor save is parked by a transaction of its own, without the
nonce of the request that has shown it (`Committer._park`). A copy of that request finds it parked.
"""

import msgspec


class Nonce(msgspec.Struct):
    """The nonce of one request, and when it can be forgotten (ms)."""

    access_key_id: str
    text: str
    expires_at: int
    is_tried: bool = False
    """Whether a transaction has stored it for this request, which may be committed."""
