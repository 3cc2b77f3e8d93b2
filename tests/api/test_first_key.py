"""An open server is closed by its first key at once."""

import asyncio
from collections.abc import Sequence
from typing import Any

from flowserver.base.limits import Limits
from flowserver.operations.access import AccessOperations
from flowserver.store.access_keys import Admission
from flowserver.store.audit import AuditRecord
from tests.support.clock import ManualClock


class KeyMadeMeanwhile:
    """A source of keys whose first read has begun before the first key is made, and ends after that."""

    def __init__(self) -> None:
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def admission(self) -> Admission:
        """What the read has seen."""
        if self.begun.is_set():
            return Admission.KEYED
        self.begun.set()
        await self.go_on.wait()
        return Admission.OPEN

    async def record_refusals(self, records: Sequence[AuditRecord]) -> None:
        """Nothing is refused here."""


async def test_a_read_from_before_the_key_was_made_does_not_keep_the_server_open(clock: ManualClock) -> None:
    keys: Any = KeyMadeMeanwhile()
    access = AccessOperations(keys, clock, Limits())
    asking = asyncio.create_task(access.is_open())
    await keys.begun.wait()
    access.expect_key()
    keys.go_on.set()
    assert not await asking
    assert not await access.is_open()
