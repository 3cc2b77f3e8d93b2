"""Signatures of messages by the scheme of Standard Webhooks: three headers, and HMAC-SHA256 over id, time and body.

A file holds the secrets, one a line: `whsec_` and the base64 form of 24 to 64 random bytes. A message is signed with
all of them, and good if one signature is. So a secret is replaced without a pause: both are in the files for a while.
"""

import base64
import binascii
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ID: Final = "Webhook-Id"
TIMESTAMP: Final = "Webhook-Timestamp"
SIGNATURE: Final = "Webhook-Signature"

TOLERANCE_SECONDS: Final = 300
"""How far a message's time may be from the receiver's clock; an older one may be a recording that is sent again."""

SECRETS_MAX: Final = 8

_PREFIX: Final = "whsec_"
_BYTES: Final = range(24, 65)
_FORM: Final = "whsec_ and the base64 form of 24 to 64 bytes"


class SigningSecretsInvalid(Exception):
    """The secrets cannot be read; the message shows none."""


class SignatureWrong(Exception):
    """The message is not signed as it must be; the message says why."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs messages, and checks those of others who have one of the secrets."""

    keys: tuple[bytes, ...] = field(repr=False)
    _keyed: list[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keyed", [hmac.new(key, digestmod="sha256") for key in self.keys])

    def headers_of(self, message_id: str, body: bytes, now: float | None = None) -> dict[str, str]:
        """The headers of a message that is sent now (seconds since 1970); the id has no line break.

        A dot in it would let one message be read as another: it is replaced.
        """
        message_id = message_id.replace(".", "_")
        timestamp = str(int(time.time() if now is None else now))
        signatures = (f"v1,{base64.b64encode(each).decode()}" for each in self._digests(message_id, timestamp, body))
        return {ID: message_id, TIMESTAMP: timestamp, SIGNATURE: " ".join(signatures)}

    def check(self, headers: Mapping[str, str], body: bytes, now: float | None = None) -> None:
        """Raises SignatureWrong; header names are found in any case."""
        message_id, timestamp, given = (headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
        if not (message_id and timestamp and given):
            raise SignatureWrong("the request is not signed: a header Webhook-Id, -Timestamp or -Signature is missing")
        wanted = self._digests(message_id, timestamp, body)
        found = [_decoded(text.removeprefix("v1,")) for text in given.split(" ")[:SECRETS_MAX] if text[:3] == "v1,"]
        if not any(hmac.compare_digest(one, other) for one in wanted for other in found):
            raise SignatureWrong("the request is not signed with a secret of this program")
        seconds = time.time() if now is None else now
        if not timestamp.isdecimal() or abs(int(timestamp[:20]) - seconds) > TOLERANCE_SECONDS:
            reason = f"the request was signed more than {TOLERANCE_SECONDS} s ago or ahead: compare both clocks"
            raise SignatureWrong(reason)

    def _digests(self, message_id: str, timestamp: str, body: bytes) -> list[bytes]:
        content = f"{message_id}.{timestamp}.".encode() + body
        copies = [keyed.copy() for keyed in self._keyed]  # not hmac.digest, which lets other threads go first
        for each in copies:
            each.update(content)
        return [each.digest() for each in copies]


def read_signer(path: Path) -> Signer:
    """The signer with the secrets of a file; empty lines and those that begin with # do not count.

    Raises SigningSecretsInvalid.
    """
    try:
        return signer_of(path.read_text("utf-8-sig"))
    except OSError as error:
        raise SigningSecretsInvalid(f"{path}: {error.strerror}") from None
    except (SigningSecretsInvalid, UnicodeDecodeError) as error:
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error
        raise SigningSecretsInvalid(f"{path}: {reason}") from None


def signer_of(text: str) -> Signer:
    """The same from the file's text."""
    lines = ((number, line.strip()) for number, line in enumerate(text.split("\n"), 1))
    keys = tuple(_key(number, line) for number, line in lines if line and not line.startswith("#"))
    if not 1 <= len(keys) <= SECRETS_MAX:
        raise SigningSecretsInvalid(f"it must have 1 to {SECRETS_MAX} secrets, one a line: {_FORM}")
    return Signer(keys)


def _key(number: int, line: str) -> bytes:
    key = _decoded(line.removeprefix(_PREFIX)) if line.startswith(_PREFIX) else b""
    if len(key) not in _BYTES:
        raise SigningSecretsInvalid(f"line {number}: a secret is {_FORM}")
    return key


def _decoded(text: str) -> bytes:
    """Nothing if it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
