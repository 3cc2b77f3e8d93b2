"""Until when an ended execution is kept."""

import pytest

from flowserver.base.clock import DAY_MS
from flowserver.machine.retention_rules import FOR_EVER, KEPT_MS_MIN, Rules

NOW = 100 * DAY_MS


@pytest.mark.parametrize(
    ("rules", "flow_days", "until"),
    [
        (FOR_EVER, None, 0),
        (FOR_EVER, 7, NOW - 7 * DAY_MS),
        (Rules(days=30, bytes_max=0), None, NOW - 30 * DAY_MS),
        (Rules(days=30, bytes_max=0), 0, 0),
    ],
)
def test_a_flow_has_days_of_its_own_or_those_of_the_server(rules: Rules, flow_days: int | None, until: int) -> None:
    assert rules.keeps_until(flow_days, NOW, is_deleted=False) == until


def test_a_deleted_flow_keeps_executions_until_no_start_is_repeated() -> None:
    assert FOR_EVER.keeps_until(0, NOW, is_deleted=True) == NOW - KEPT_MS_MIN
