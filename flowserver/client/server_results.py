"""What the server answers about itself, as typed objects."""

import msgspec

from flowserver.client.results import Json, Result


class Count(msgspec.Struct, frozen=True, rename="camel"):
    """How many there are; with `at_least` there may be more."""

    count: int
    at_least: bool = False

    def __str__(self) -> str:
        return f"≥{self.count}" if self.at_least else str(self.count)


class Readiness(Result, frozen=True):
    """Whether the process that answers serves requests."""

    ready: bool = True
    new_work_refused: str | None = None
    """Why it refuses new work although it serves all else, such as a disk that is almost full; None if it does not."""
    deletions_paused: str | None = None
    """Why it deletes nothing by its age: its clock was set; None if it does."""


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
    new_work_refused: str | None = None
    """Why the process that answers refuses new work; None if it accepts it."""
    deletions_paused: str | None = None
    """Why the process that answers deletes nothing by its age; None if it does."""


class Permissions(Result, frozen=True):
    """Who the caller is, and what it may do."""

    key: str | None
    """The label of the caller's key; None if the server is open."""
    open: bool
    may: list[str]
    """Names such as `executions.start`."""
    role: str = "admin"
    """The role of the caller's key."""
    flows: str = ""
    """What the names of the flows begin with that the caller may see and use."""


class Node(Result, frozen=True):
    """A process that serves the database."""

    id: str
    started_time: str
    heartbeat_time: str
    leaving: bool


class AccessKey(Result, frozen=True):
    """An access key, without its secrets."""

    id: str
    label: str
    created_time: str
    disabled_time: str | None = None
    role: str = "admin"
    flows: str = ""
    """What the names of the flows begin with that it is for."""
    expires_time: str | None = None
    last_used_time: str | None = None


class AuditRecord(Result, frozen=True):
    """One operation, or refusals of one kind."""

    id: str
    time: str
    key: str
    """The id of the caller's key; empty without one."""
    caller: str
    """The label of the key; of a command on the server's machine, the user who ran it."""
    api: str
    address: str
    request_id: str
    operation: str
    object: str
    """The path of what it was done to."""
    result: str | None
    """`ok` or the code of an error; None while it is not known."""
    count: int
    """How many refusals were counted in it."""
    last_time: str | None = None


class FunctionHealth(Result, frozen=True):
    """How a function fares: the calls that the node which answers has made in the last minutes."""

    service: str
    function: str
    calls: int
    errors: int
    errors_by_name: dict[str, int]
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    in_flight: int
