"""Access control: access keys, bearer tokens, and whether the server is open."""

import asyncio
import logging
import math
import secrets
from dataclasses import dataclass, field
from time import monotonic

from flowserver.base.clock import Clock
from flowserver.base.errors import AccessDenied, UnknownAccessKey
from flowserver.base.limits import Limits
from flowserver.base.nonces import Nonce, NonceExpiries
from flowserver.base.request_context import present_request
from flowserver.concurrency.futures import shared
from flowserver.concurrency.single_flight import SingleFlight
from flowserver.operations.callers import Caller, Need
from flowserver.operations.key_sources import KeyKind, Keys
from flowserver.operations.permissions import ADMIN
from flowserver.operations.refusals import RefusalLog
from flowserver.store.access_keys import AccessKey, Admission, token_digest

log = logging.getLogger(__name__)

REMEMBER_SECONDS = 1.0
"""How long a key that was just disabled may still be accepted, and how soon a first key closes an open server."""

REMEMBERED_MAX = 10_000
"""Keys in this cache. Only keys that exist come into it."""

NOTED_SECONDS = 60.0
"""A key's use is recorded at most once in this time, by each node."""

KEYS_LOST = (
    "this server answers only to holders of an access key, and its database holds no key any more; "
    "create one: flowserver keys create"
)

TOKEN_PREFIX = "fls_"  # noqa: S105 - a prefix, so that scanners can tell such tokens, no secret


@dataclass(frozen=True, slots=True)
class NewAccessKey:
    """A new key, shown once: its bearer token cannot be read again."""

    key: AccessKey
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Remembered:
    """An enabled key, until an instant of the monotonic clock."""

    caller: Caller
    secret: str = field(repr=False)
    until: float


class AccessOperations:
    """Looks up callers' keys, and caches the results for a short time.

    Once the server has seen a key it stays closed, even if the rows of its keys are lost. A server that listens beyond
    loopback (`is_wide`) is never open.
    """

    def __init__(self, keys: Keys, clock: Clock, limits: Limits, *, is_wide: bool = False) -> None:
        self._keys = keys
        self._clock = clock
        self.refusals = RefusalLog(keys.record_refusals, clock, limits.audit_refusals_max)
        """Facades tell it of the errors that they answer with."""
        self._is_closed = is_wide
        self._nonce_expiries = NonceExpiries()
        self._remembered: dict[tuple[KeyKind, str], _Remembered] = {}
        self._noted_until: dict[str, float] = {}
        self._admission = Admission.LOST
        self._look_again_at = -math.inf
        self._keys_expected = 0
        self._reads: SingleFlight[None, None] = SingleFlight()
        self._finds: SingleFlight[tuple[KeyKind, str], _Remembered | None] = SingleFlight()

    async def is_open(self) -> bool:
        """Whether callers need no key, because none was ever created.

        Raises AccessDenied if callers need a key but none exists.
        """
        await self._look_again()
        if self._admission is Admission.LOST:
            raise AccessDenied(KEYS_LOST)
        return self._admission is Admission.OPEN

    async def is_keyless(self) -> bool:
        """As `is_open`; but False, and no read, once the server has seen a key or if it listens beyond loopback."""
        if not self._is_closed:
            await self._look_again()
        return not self._is_closed

    async def check_open(self) -> None:
        """Raises AccessDenied unless callers need no key. Such a caller may do everything."""
        if not await self.is_open():
            raise AccessDenied("the server has access keys now; send one")

    def expect_key(self) -> None:
        """A key was made: look for it with the next request, so that an open server is closed at once."""
        self._keys_expected += 1
        self._look_again_at = -math.inf

    async def _look_again(self) -> None:
        if asyncio.get_running_loop().time() >= self._look_again_at:
            await self._reads.run(None, self._read_admission)
        while self._look_again_at == -math.inf:  # a key was made during the read, which may not have seen it
            await self._reads.run(None, self._read_admission)

    async def _read_admission(self) -> None:
        expected = self._keys_expected
        found, before = await self._keys.admission(), self._admission
        if expected != self._keys_expected:
            return
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
        request = present_request()
        if request is not None:
            request.claimed_key_id = access_key_id
        found = self._known("id", access_key_id) or await self._find("id", access_key_id)
        if found is None:
            raise UnknownAccessKey(f"access key {access_key_id} is unknown or disabled, or has expired")
        return found.secret

    async def holder_of_key(self, access_key_id: str) -> Caller:
        """The caller that has proved to have the key of this id; raises AccessDenied unless the key may be used."""
        found = self._known("id", access_key_id) or await self._find("id", access_key_id)
        if found is None:
            raise AccessDenied(f"access key {access_key_id} was disabled, or has expired")
        return self._holder(found)

    async def bearer(self, token: str) -> Caller:
        """The caller that has sent this bearer token; raises AccessDenied unless its key may be used."""
        digest = token_digest(token)
        found = self._known("token", digest) or await self._find("token", digest)
        if found is None:
            raise AccessDenied("the bearer token is unknown or disabled, or has expired")
        return self._holder(found)

    async def admit_holder(self, access_key_id: str, need: Need, flow: str | None) -> Caller:
        """As `holder_of_key`; raises AccessDenied, too, if the caller may not make a call with this need."""
        caller = await self.holder_of_key(access_key_id)
        caller.require(need, flow)
        return caller

    async def admit_bearer(self, token: str, need: Need, flow: str | None) -> Caller:
        """As `bearer`; raises AccessDenied, too, if the caller may not make a call with this need."""
        caller = await self.bearer(token)
        caller.require(need, flow)
        return caller

    def _holder(self, found: "_Remembered") -> Caller:
        caller = found.caller
        now = monotonic()
        if now >= self._noted_until.get(caller.key_id, 0):
            self._noted_until[caller.key_id] = now + NOTED_SECONDS
            shared(self._keys.note_use(caller.key_id))  # the request neither waits for it nor fails with it
        request = present_request()
        if request is not None:
            request.key_id, request.key_label = caller.key_id, caller.label or ""
        return caller

    async def use_nonce(self, access_key_id: str, nonce: str, kept_ms: int) -> None:
        """Accept a signature nonce once in `kept_ms`, durably; raises SignatureNonceUsed."""
        await self._keys.use_nonce(self._nonce(access_key_id, nonce, kept_ms))

    def use_nonce_with_change(self, access_key_id: str, nonce: str, kept_ms: int) -> None:
        """As `use_nonce`, but together with the first change that the present request submits.

        That change fails with SignatureNonceUsed if the nonce was used before. A request without any change needs
        `use_nonce_of_request` at its end.
        """
        request = present_request()
        assert request is not None, "only requests are signed"
        request.nonce = self._nonce(access_key_id, nonce, kept_ms)

    async def use_nonce_of_request(self) -> None:
        """Use up the nonce of the present request if it has changed nothing; raises SignatureNonceUsed."""
        request = present_request()
        if request is not None and request.nonce is not None:
            nonce, request.nonce = request.nonce, None
            await self._keys.use_nonce(nonce)

    def _nonce(self, access_key_id: str, nonce: str, kept_ms: int) -> Nonce:
        return Nonce(access_key_id, nonce, self._nonce_expiries.next(self._clock.now_ms() + kept_ms))

    def _known(self, kind: KeyKind, value: str) -> "_Remembered | None":
        """A usable key that was found a moment ago."""
        found = self._remembered.get((kind, value))
        return None if found is None or monotonic() >= found.until else found

    async def _find(self, kind: KeyKind, value: str) -> "_Remembered | None":
        return await self._finds.run((kind, value), lambda: self._read(kind, value))

    async def _read(self, kind: KeyKind, value: str) -> "_Remembered | None":
        key = await self._keys.find(kind, value)
        if key is None:
            self._remembered.pop((kind, value), None)
            return None
        if len(self._remembered) >= REMEMBERED_MAX:
            self._remembered.clear()
        caller = Caller(key.role, key.flows, key.label, key.access_key_id)
        found = self._remembered[kind, value] = _Remembered(caller, key.secret, monotonic() + REMEMBER_SECONDS)
        return found


def make_access_key(
    label: str, now_ms: int, *, role: str = ADMIN, flows: str = "", expires_at: int | None = None
) -> NewAccessKey:
    """A new random key: id, secret for signatures, and bearer token (256 bits each but the id).

    It has a role, and is for the flows whose names begin with `flows`, until `expires_at` (ms).
    """
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    key = AccessKey(
        access_key_id="FLS" + secrets.token_hex(10).upper(),
        secret=secrets.token_urlsafe(32),
        token_digest=token_digest(token),
        label=label,
        created_at=now_ms,
        role=role,
        flows=flows,
        expires_at=expires_at,
    )
    return NewAccessKey(key, token)
