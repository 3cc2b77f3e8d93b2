"""What the server answers about itself, as typed objects."""

import msgspec

from flowserver.client.results import Json, Result


class Count(msgspec.Struct, frozen=True, rename="camel"):
    """How many there are; with `at_least` there may be more."""

    count: int
    at_least: bool = False

    def __str__(self) -> str:
        return f"≥{self.count}" if self.at_least else str(self.count)


class Overview(Result, frozen=True):
    """The whole server at a glance; at most some seconds old."""

    time: str
    running: Count
    late: Count
    parked: Count
    waiting_for_redrive: Count
    waiting_tasks: Count
    parked_invocations: Count
    overdue_schedules: Count
    failed_since: str
    """Since when `failed` and `timed_out` are counted."""
    failed: Count
    timed_out: Count
    throughput: Json
    """Starts and failures in equal parts of time: `fromTime`, `bucketSeconds`, `completeFrom`, `started`, `failed`."""
    attention: list[Json]
    """What a person should look at: objects with `kind`, `flowName`, `name`, `since` and what explains it."""
