"""How the load generator proves who it is. It does as little work per request as possible, like its client.

`open` sends nothing, to a server without keys. `bearer` sends the token of a key. `v1` and `v3` sign each RPC request,
as the SDKs do, and send the token with all others.
"""

import base64
import hashlib
import hmac
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from urllib.parse import quote

KINDS = ("open", "bearer", "v1", "v3")

_V3_NAMES = (
    b"host",
    b"x-acs-action",
    b"x-acs-content-sha256",
    b"x-acs-date",
    b"x-acs-signature-nonce",
    b"x-acs-version",
)
_numbers = count()


@dataclass(frozen=True)
class Credentials:
    """One access key, and how requests use it."""

    kind: str = "open"
    key_id: str = ""
    secret: str = ""
    token: str = ""

    @cached_property
    def headers(self) -> bytes:
        """Whole lines, for a request that is not signed."""
        return b"Authorization: Bearer %b\r\n" % self.token.encode() if self.token else b""

    def rpc(self, action: bytes, host: bytes) -> tuple[bytes, bytes]:
        """The header lines and the body of an RPC request."""
        if self.kind == "v1":
            return b"", self._v1(action)
        if self.kind == "v3":
            return self._v3(action, host), action
        return self.headers, action

    def _v1(self, action: bytes) -> bytes:
        pairs = [
            *action.replace(b"+", b"%20").split(b"&"),
            b"AccessKeyId=%b" % self.key_id.encode(),
            b"SignatureMethod=HMAC-SHA1",
            b"SignatureVersion=1.0",
            b"SignatureNonce=%b" % _nonce(),
            b"Timestamp=%b" % _instant().replace(b":", b"%3A"),
            b"Version=2019-03-15",
        ]
        text = b"POST&%2F&" + quote(b"&".join(sorted(pairs)), safe="").encode()
        digest = hmac.digest(f"{self.secret}&".encode(), text, "sha1")
        return b"&".join((*pairs, b"Signature=%b" % quote(base64.b64encode(digest), safe="").encode()))

    def _v3(self, action: bytes, host: bytes) -> bytes:
        name = action.partition(b"Action=")[2].partition(b"&")[0]
        body_hash = hashlib.sha256(action).hexdigest().encode()
        values = (host, name, body_hash, _instant(), _nonce(), b"2019-03-15")
        lines = b"".join(b"%b:%b\n" % pair for pair in zip(_V3_NAMES, values, strict=True))
        names = b";".join(_V3_NAMES)
        request = b"\n".join((b"POST", b"/", b"", lines, names, body_hash))
        text = b"ACS3-HMAC-SHA256\n" + hashlib.sha256(request).hexdigest().encode()
        signature = hmac.digest(self.secret.encode(), text, "sha256").hex().encode()
        sent = b"".join(b"%b: %b\r\n" % pair for pair in zip(_V3_NAMES[1:], values[1:], strict=True))
        signed = b"Credential=%b,SignedHeaders=%b,Signature=%b" % (self.key_id.encode(), names, signature)
        return b"%bAuthorization: ACS3-HMAC-SHA256 %b\r\n" % (sent, signed)


OPEN = Credentials()


def create_key(
    kind: str, database_url: str, environment: Mapping[str, str], python: str = sys.executable
) -> Credentials:
    """Make a key in a database that is new, with the program of `python`'s checkout; none for `open`."""
    if kind == "open":
        return OPEN
    run = [python, "-P", "-m", "flowserver"]
    database = ["--database-url", database_url]
    for command in (["migrate", *database], ["keys", "create", "--label", "benchmark", *database]):
        done = subprocess.run(
            [*run, *command], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
    shown = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    return Credentials(kind, *(shown[name].strip() for name in ("access key id", "secret", "bearer token")))


def _nonce() -> bytes:
    """As long as those of the SDKs, and as scattered."""
    return hashlib.md5(b"%d" % next(_numbers), usedforsecurity=False).hexdigest().encode()


def _instant() -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()).encode()
