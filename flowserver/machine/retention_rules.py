"""How long ended executions are kept."""

from dataclasses import dataclass
from typing import Final

from flowserver.base.clock import DAY_MS

KEPT_MS_MIN: Final = 300_000
"""Shortest retention under any rules: a start that is repeated because its reply was lost must find its execution."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How long ended executions are kept, in days, and how many bytes all data may take; 0 for no bound."""

    days: int
    bytes_max: int

    def keeps_until(self, flow_days: int | None, now_ms: int, *, is_deleted: bool) -> int:
        """Executions of a flow that ended before this instant (ms) have been kept for long enough.

        `flow_days` is the flow's own number of days, None for the rules'; a deleted flow keeps none.
        """
        if is_deleted:
            return now_ms - KEPT_MS_MIN
        days = self.days if flow_days is None else flow_days
        return 0 if days == 0 else min(now_ms - days * DAY_MS, now_ms - KEPT_MS_MIN)


FOR_EVER: Final = Rules(days=0, bytes_max=0)
