"""Records of the audit are deleted by their age, and the oldest beyond a number."""

from functools import partial

import pytest

from flowserver.base.clock import DAY_MS
from flowserver.base.limits import Limits
from flowserver.operations.audit_retention import AuditRetention
from flowserver.store.audit import AuditFilter, AuditRecord, begin_record, list_records, record_id_at
from tests.engine.nodes import Node
from tests.support.clock import ManualClock


@pytest.fixture
def limits() -> Limits:
    return Limits(audit_records_max=3)


async def test_records_are_deleted_by_age_and_beyond_a_number(
    node: Node, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = node.engine
    retention = AuditRetention(engine.context, days=2)

    async def add(*operations: str) -> None:
        for operation in operations:
            now = clock.now_ms()
            record = AuditRecord(record_id=record_id_at(now), at=now, operation=operation)
            await engine.committer.write(partial(begin_record, record=record))
            clock.advance(ms=DAY_MS // 4)

    def left() -> list[str]:
        listed = partial(list_records, wanted=AuditFilter(), before=None, limit=10)
        return [each.operation for each in engine.database.run_read(listed)[0]]

    await add("1", "2")
    clock.advance(ms=DAY_MS * 3 // 2)
    assert (await retention.run_once(), left()) == (0, ["2", "1"])
    clock.advance(ms=1)
    assert (await retention.run_once(), left()) == (1, ["2"])
    assert "younger" not in caplog.text
    await add("3", "4", "5")
    assert (await retention.run_once(), left()) == (1, ["5", "4", "3"])
    await retention.stop()


async def test_the_log_says_when_records_are_deleted_early(
    node: Node, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    retention = AuditRetention(node.engine.context, days=2)
    for number in range(5):
        record = AuditRecord(record_id=record_id_at(clock.now_ms()), at=clock.now_ms(), operation=str(number))
        await node.engine.committer.write(partial(begin_record, record=record))
    assert await retention.run_once() == 2
    assert "younger than 2 days" in caplog.text
    await retention.stop()
