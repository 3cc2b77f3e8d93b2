"""Access keys: the front checks them, the engine looks them up."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flowserver.base.nonces import Nonce
from flowserver.front.link import Handler, Link
from flowserver.operations.key_sources import KeyKind, Keys
from flowserver.store.access_keys import AccessKey, Admission
from flowserver.store.audit import AuditRecord


class DistantKeys:
    """The front's side: `Keys` that the engine knows."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def admission(self) -> Admission:
        """Who may call, as far as the database knows."""
        return Admission(await self._link.call("admission"))

    async def find(self, kind: KeyKind, value: str) -> AccessKey | None:
        """The key of that id, or of that digest of its token, if it is enabled and has not expired."""
        found = await self._link.call("find_key", kind, value)
        return None if found is None else AccessKey(**found)

    async def use_nonce(self, nonce: Nonce) -> None:
        """Use up a nonce, durably; raises SignatureNonceUsed."""
        await self._link.call("use_nonce", nonce.access_key_id, nonce.text, nonce.expires_at)

    async def note_use(self, access_key_id: str) -> None:
        """Record that a key was used now."""
        await self._link.call("note_key_use", access_key_id)

    async def record_refusals(self, records: Sequence[AuditRecord]) -> None:
        """Add records of refused callers to the audit, or bring their counts up to date."""
        await self._link.call("record_refusals", [asdict(record) for record in records])


def handlers_of_keys(keys: Keys) -> Mapping[str, Handler]:
    """The engine's side."""

    async def record_refusals(records: Sequence[Mapping[str, Any]]) -> None:
        await keys.record_refusals([AuditRecord(**record) for record in records])

    return {
        "admission": keys.admission,
        "find_key": keys.find,
        "use_nonce": lambda *parts: keys.use_nonce(Nonce(*parts)),
        "note_key_use": keys.note_use,
        "record_refusals": record_refusals,
    }
