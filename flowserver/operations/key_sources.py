"""Where the checks of requests find access keys, and use up nonces. `cli/keys.py` makes and disables keys."""

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol

from flowserver.base.encryption import CannotDecrypt
from flowserver.base.errors import InternalServerError
from flowserver.base.nonces import Nonce
from flowserver.base.request_context import apart_from_request
from flowserver.engine.engine import Engine
from flowserver.store.access_keys import (
    AccessKey,
    Admission,
    find_access_key,
    find_key_by_token,
    note_key_use,
    read_admission,
)
from flowserver.store.audit import AuditRecord, count_refusals
from flowserver.store.encrypted_values import place_of
from flowserver.store.schema.tables import access_keys

log = logging.getLogger(__name__)

KeyKind = Literal["id", "token"]
"""By what a key is looked for: its id, or its token's digest."""


class Keys(Protocol):
    """A source of keys. All methods raise the database's errors, or what the link to the engine makes of them."""

    async def admission(self) -> Admission:
        """Who may call, as far as the database knows."""
        ...

    def find(self, kind: KeyKind, value: str) -> Coroutine[Any, Any, AccessKey | None]:
        """The key of that id, or of that digest of its token, if it is enabled and has not expired.

        Only a key that was found by its id has its secret in clear text. Raises InternalServerError if it cannot be
        decrypted.
        """
        ...

    async def use_nonce(self, nonce: Nonce) -> None:
        """Use up a nonce, durably; raises SignatureNonceUsed."""
        ...

    async def note_use(self, access_key_id: str) -> None:
        """Record that a key was used now."""
        ...

    async def record_refusals(self, records: Sequence[AuditRecord]) -> None:
        """Add records of refused callers to the audit, or bring their counts up to date."""
        ...


class EngineKeys:
    """The keys in an engine's database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def admission(self) -> Admission:
        """Who may call, according to the database."""
        return await self._engine.reader.ask(read_admission)

    async def find(self, kind: KeyKind, value: str) -> AccessKey | None:
        """The key of that id, or of that digest of its token, if it is enabled and has not expired."""
        look = find_access_key if kind == "id" else find_key_by_token
        now_ms = self._engine.clock.now_ms()
        key = await self._engine.reader.ask(lambda connection: look(connection, value, now_ms), by_caller=True)
        return key if key is None or kind == "token" else self._with_secret(key)

    def _with_secret(self, key: AccessKey) -> AccessKey:
        """The key with its secret in clear text, which only signatures need."""
        try:
            secret = self._engine.encryption.reveal(key.secret, place_of(access_keys, key.access_key_id))
        except CannotDecrypt:
            message = f"this server has no key that decrypts the secret of access key {key.access_key_id}"
            log.error(message)
            raise InternalServerError(f"{message}; see `flowserver doctor`") from None
        return replace(key, secret=secret)

    async def use_nonce(self, nonce: Nonce) -> None:
        """Use up a nonce, durably; raises SignatureNonceUsed."""
        with apart_from_request():
            await self._engine.committer.spend(nonce)

    async def note_use(self, access_key_id: str) -> None:
        """Record that a key was used now."""
        note = partial(note_key_use, access_key_id=access_key_id, now_ms=self._engine.clock.now_ms())
        with apart_from_request():
            await self._engine.committer.write(note, by_caller=True)

    async def record_refusals(self, records: Sequence[AuditRecord]) -> None:
        """Add records of refused callers to the audit, or bring their counts up to date."""
        with apart_from_request():
            await self._engine.committer.write(partial(count_refusals, records=records), by_caller=True)
