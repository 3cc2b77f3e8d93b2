"""Access control: access keys, bearer tokens, and whether the server is open."""

import asyncio
import logging
import math
import secrets
from dataclasses import dataclass

from cachetools import TTLCache

from flowserver.base.errors import AccessDenied, SignatureNonceUsed, UnknownAccessKey
from flowserver.concurrency.single_flight import SingleFlight
from flowserver.operations.key_sources import KeyKind, Keys
from flowserver.store.access_keys import AccessKey, Admission, token_digest

log = logging.getLogger(__name__)

REMEMBER_SECONDS = 1.0
"""How long a key that was just disabled may still be accepted, and how soon a first key closes an open server."""

KEYS_LOST = (
    "this server answers only to holders of an access key, and its database holds no key any more; "
    "create one: flowserver keys create"
)

TOKEN_PREFIX = "fls_"  # noqa: S105 - a prefix, so that scanners can tell such tokens, no secret


@dataclass(frozen=True, slots=True)
class NewAccessKey:
    """A new key, shown once: its bearer token cannot be read again."""

    key: AccessKey
    token: str


class AccessOperations:
    """Looks up callers' keys, and caches the results for a short time.

    Once the server has seen a key it stays closed, even if the rows of its keys are lost. A server that listens beyond
    loopback (`is_wide`) is never open.
    """

    def __init__(self, keys: Keys, *, is_wide: bool = False) -> None:
        self._keys = keys
        self._is_closed = is_wide
        self._remembered: TTLCache[tuple[KeyKind, str], AccessKey] = TTLCache(10_000, REMEMBER_SECONDS)
        self._admission = Admission.LOST
        self._look_again_at = -math.inf
        self._reads: SingleFlight[None, None] = SingleFlight()
        self._finds: SingleFlight[tuple[KeyKind, str], AccessKey | None] = SingleFlight()

    async def is_open(self) -> bool:
        """Whether callers need no key, because none was ever created.

        Raises AccessDenied if callers need a key but none exists.
        """
        if asyncio.get_running_loop().time() >= self._look_again_at:
            await self._reads.run(None, self._read_admission)
        if self._admission is Admission.LOST:
            raise AccessDenied(KEYS_LOST)
        return self._admission is Admission.OPEN

    async def check_open(self) -> None:
        """Raises AccessDenied unless callers need no key."""
        if not await self.is_open():
            raise AccessDenied("the server has access keys now; send one")

    async def _read_admission(self) -> None:
        found, before = await self._keys.admission(), self._admission
        if found is Admission.OPEN and self._is_closed:
            found = Admission.LOST
        if before is Admission.OPEN and found is not before:
            log.info("there is an access key now: callers without one are refused")
        if before is Admission.KEYED and found is Admission.LOST:
            log.critical(KEYS_LOST)
        self._is_closed |= found is not Admission.OPEN
        self._admission = found
        self._look_again_at = asyncio.get_running_loop().time() + REMEMBER_SECONDS

    async def secret_of(self, access_key_id: str) -> str:
        """The secret of an enabled key; raises UnknownAccessKey."""
        key = await self._find("id", access_key_id)
        if key is None:
            raise UnknownAccessKey(f"access key {access_key_id} is unknown or disabled")
        return key.secret

    async def check_key(self, access_key_id: str) -> None:
        """Raises AccessDenied unless there is an enabled key of this id."""
        if await self._find("id", access_key_id) is None:
            raise AccessDenied(f"access key {access_key_id} was disabled")

    async def check_bearer(self, token: str) -> None:
        """Raises AccessDenied unless an enabled key has this bearer token."""
        if await self._find("token", token_digest(token)) is None:
            raise AccessDenied("the bearer token is unknown or disabled")

    async def label_of(self, token: str) -> str | None:
        """The label of the enabled key that has this bearer token; None if there is none."""
        key = await self._find("token", token_digest(token))
        return None if key is None else key.label

    async def use_nonce(self, access_key_id: str, nonce: str, kept_ms: int) -> None:
        """Accept a signature nonce once in `kept_ms`, durably; raises SignatureNonceUsed."""
        if not await self._keys.use_nonce(access_key_id, nonce, kept_ms):
            raise SignatureNonceUsed

    async def _find(self, kind: KeyKind, value: str) -> AccessKey | None:
        known = self._remembered.get((kind, value))
        if isinstance(known, AccessKey):
            return known
        key = await self._finds.run((kind, value), lambda: self._keys.find(kind, value))
        if key is not None:
            self._remembered[(kind, value)] = key
        return key


def make_access_key(label: str, now_ms: int) -> NewAccessKey:
    """A new random key: id, secret for signatures, and bearer token (256 bits each but the id)."""
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    key = AccessKey(
        access_key_id="FLS" + secrets.token_hex(10).upper(),
        secret=secrets.token_urlsafe(32),
        token_digest=token_digest(token),
        label=label,
        created_at=now_ms,
        disabled_at=None,
    )
    return NewAccessKey(key, token)
