"""Task tokens: authenticated names of waits. Opaque to clients, at most 1,024 characters.

A token is a keyed hash over what it names, so it needs no storage and cannot be forged without the server's key;
it is used up when the wait it names is over.

Several servers that share out flows among them are *cells*. Each has a key of its own, so only the cell that made a
token can redeem it. A cell's name is in its tokens, for the others to say where a token belongs.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

VERSION: Final = "v1"
VERSION_WITH_CELL: Final = "v2"
TOKEN_CHARACTERS_MAX: Final = 1_024
CELL_PATTERN: Final = r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$"
"""As a label of a host name, so that a cell can have its name in its address; or empty."""


@dataclass(frozen=True, slots=True)
class TokenClaim:
    """What a token names: one entry of a step, or (with a wait id) one attempt of it."""

    execution_id: str
    scope_id: int
    entered_event_id: int
    wait_id: int | None


class TaskTokens:
    """Makes task tokens under one key of at least 16 bytes, and reads those of further keys, too.

    Those that it makes name the cell, if it has a name. It also reads tokens from before the cell got that name.
    """

    def __init__(self, key: bytes, cell: str = "", further: Sequence[bytes] = ()) -> None:
        assert all(len(each) >= 16 for each in (key, *further))
        assert re.match(CELL_PATTERN, cell)
        self._keyed, *self._further = (hmac.new(each, digestmod=hashlib.sha256) for each in (key, *further))
        self._cell = cell
        self._head = f"{VERSION_WITH_CELL}#{cell}" if cell else VERSION

    def make(self, execution_id: str, scope_id: int, entered_event_id: int, wait_id: int | None) -> str:
        """The token; equal arguments give the same one."""
        wait = "" if wait_id is None else str(wait_id)
        claim = f"{self._head}#{execution_id}#{scope_id}#{entered_event_id}#{wait}"
        text = f"{claim}#{_mac(claim, self._keyed)}"
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def read(self, token: str) -> TokenClaim | None:
        """What the token claims; None if this server did not make it."""
        claim, _, mac = _text_of(token).rpartition("#")
        if not any(hmac.compare_digest(mac, _mac(claim, keyed)) for keyed in (self._keyed, *self._further)):
            return None
        execution_id, scope_id, entered_event_id, wait = claim.split("#")[-4:]
        return TokenClaim(execution_id, int(scope_id), int(entered_event_id), int(wait) if wait else None)

    def why_unknown(self, token: str) -> str:
        """Why a token that cannot be read is refused: "is not a task token of this server", or the cell that it names.

        What it names is not proved, so it is good for nothing but to tell the caller.
        """
        version, _, claim = _text_of(token).partition("#")
        cell, _, _ = claim.partition("#")
        is_named = version == VERSION_WITH_CELL and re.fullmatch(CELL_PATTERN, cell) and cell not in ("", self._cell)
        if not is_named:
            return "is not a task token of this server"
        return f"is a task token of the cell {cell}, not of {f'the cell {self._cell}' if self._cell else 'this server'}"


def _mac(claim: str, key: hmac.HMAC) -> str:
    keyed = key.copy()  # not hmac.digest, which lets other threads go first at every call
    keyed.update(claim.encode())
    return keyed.hexdigest()[:40]


def _text_of(token: str) -> str:
    """What the token encodes; "" if it is none. Clients may pad it."""
    if len(token) > TOKEN_CHARACTERS_MAX:
        return ""
    try:
        padded = token.rstrip("=") + "=" * (-len(token.rstrip("=")) % 4)
        return base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        return ""
