"""Task tokens: authenticated names of waits. Opaque to clients, at most 1,024 characters.

A token is a keyed hash over what it names, so it needs no storage and cannot be forged without the server's key;
it is used up when the wait it names is over.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

VERSION = "v1"
TOKEN_CHARACTERS_MAX = 1_024


@dataclass(frozen=True, slots=True)
class TokenClaim:
    """What a token names: one entry of a step, or (with a wait id) one attempt of it."""

    execution_id: str
    scope_id: int
    entered_event_id: int
    wait_id: int | None


class TaskTokens:
    """Makes and reads task tokens under one key of at least 16 bytes."""

    def __init__(self, key: bytes) -> None:
        assert len(key) >= 16
        self._keyed = hmac.new(key, digestmod=hashlib.sha256)

    def make(self, execution_id: str, scope_id: int, entered_event_id: int, wait_id: int | None) -> str:
        """The token; equal arguments give the same one."""
        wait = "" if wait_id is None else str(wait_id)
        claim = f"{VERSION}#{execution_id}#{scope_id}#{entered_event_id}#{wait}"
        text = f"{claim}#{self._mac(claim)}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def read(self, token: str) -> TokenClaim | None:
        """What the token claims; None if this server did not make it."""
        if len(token) > TOKEN_CHARACTERS_MAX:
            return None
        try:
            padded = token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4)
            text = base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode("ascii")
        except (binascii.Error, UnicodeError, ValueError):
            return None
        claim, _, mac = text.rpartition("#")
        if not hmac.compare_digest(mac, self._mac(claim)):
            return None
        _, execution_id, scope_id, entered_event_id, wait = claim.split("#")
        return TokenClaim(execution_id, int(scope_id), int(entered_event_id), int(wait) if wait else None)

    def _mac(self, claim: str) -> str:
        keyed = self._keyed.copy()  # not hmac.digest, which lets other threads go first at every call
        keyed.update(claim.encode())
        return keyed.hexdigest()[:40]
