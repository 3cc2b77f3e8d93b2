"""The command `flowserver status`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from math import inf, isfinite
from typing import Final, TypeVar

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.output import show_names
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import instant_of
from flowserver.cli.tables import aligned
from flowserver.client.errors import NotPermitted

FAILED_COUNTED_MAX: Final = 1_000
"""Failed executions that are counted; more are not looked for."""

TASKS_COUNTED_MAX: Final = 200
"""The same for tasks that wait for an answer."""

_COUNTS: Final = {
    "flowserver_nodes": ("nodes", ""),
    "flowserver_running_executions": ("runningExecutions", ""),
    "flowserver_parked_executions": ("parkedExecutions", "flowserver executions list --parked"),
    "flowserver_executions_waiting_for_redrive": (
        "executionsWaitingForRedrive",
        "flowserver executions list --waiting-redrive",
    ),
    "flowserver_parked_invocations": ("parkedInvocations", "flowserver invocations list"),
    "flowserver_schedules_with_missed_runs": ("schedulesWithMissedRuns", "flowserver schedules list"),
    "flowserver_stuck_executions": ("stuckExecutions", "flowserver doctor"),
    "flowserver_calls_waiting": ("callsWaiting", ""),
}
"""Metrics that are shown: under which name, and the command that shows more of what needs a look."""

_SIZES: Final = {
    "flowserver_free_disk_bytes": "freeDiskBytes",
    "flowserver_disk_reserve_bytes": "diskReserveBytes",
    "flowserver_used_bytes": "usedBytes",
    "flowserver_data_bytes_max": "dataBytesMax",
}
"""Metrics of space, and under which name they are shown; a bound that is not finite is none."""

FORBIDDEN: Final = 403

T = TypeVar("T")

_FAILED: Final = "flowserver executions list --status failed --ended-since 1d"
_TASKS: Final = "flowserver tasks list"


@remote
def status(session: Session) -> None:
    """Show the state of the server, and what needs attention.

    It shows whether the server is ready and accepts new work, the free space of its disk, and counts running, parked,
    stuck and failed executions, those that wait for a redrive, and waiting tasks and calls. Notes say why new work is
    refused, and name the commands that show more. What the key may not see is left out, and a note says why.

    \b
    Examples:
      flowserver status
      flowserver status -o json
    """
    client = session.client
    readiness = client.readiness()
    ready, refused, paused = readiness.ready, readiness.new_work_refused, readiness.deletions_paused
    seen = _Seen()
    values = seen.try_to(client.metrics) or {}
    counts = {name: int(values[metric]) for metric, (name, _) in _COUNTS.items() if metric in values}
    sizes = {name: int(values[metric]) for metric, name in _SIZES.items() if isfinite(values.get(metric, inf))}
    since = instant_of("1d", "", datetime.now(UTC))
    failed = seen.try_to(
        lambda: _count(session.executions(None, status="Failed", ended_from=since), FAILED_COUNTED_MAX)
    )
    tasks = seen.try_to(lambda: _count(client.tasks(), TASKS_COUNTED_MAX))
    limited = {"waitingTasks": (tasks, TASKS_COUNTED_MAX), "failedInOneDay": (failed, FAILED_COUNTED_MAX)}
    further = {name: count for name, (count, _) in limited.items() if count is not None}
    if session.output == "name":
        show_names([session.url])
        return
    if session.output == "table":
        rows = [["server:", session.url], ["ready:", "yes" if ready else "no"]]
        if ready:
            rows.append(["new work:", "refused" if refused else "accepted"])
            rows += [["deletions by age:", "paused"]] if paused else []
        rows += _rows_of_space(sizes)
        rows += [[f"{_words(name)}:", str(counts[name])] for name, _ in _COUNTS.values() if name in counts]
        for name, count in further.items():
            rows.append([f"{_words(name)}:", f"{count}{' or more' if count == limited[name][1] else ''}"])
        typer.echo(aligned(rows))
    else:
        document = {"server": session.url, "ready": ready, "newWorkRefused": refused, "deletionsPaused": paused}
        show_document(session.output, {**document, **sizes, **counts, **further})
    for reason in seen.reasons:
        session.note(f"Not shown: {reason}.")
    if session.output != "table":
        return
    if refused:
        session.note(f"New work is refused: {refused}.")
    if paused:
        session.note(f"Deletions by age pause: {paused}.")
    found = counts | further
    for name, command in [*_COUNTS.values(), ("waitingTasks", _TASKS), ("failedInOneDay", _FAILED)]:
        if command and found.get(name):
            session.note(f"Look: {command}")


class _Seen:
    """What the key may see; `reasons` say why it may not see the rest."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def try_to(self, read: Callable[[], T]) -> T | None:
        """What is read; None if the key may not. Raises NotPermitted if the server does not know the key at all."""
        try:
            return read()
        except NotPermitted as error:
            if error.status != FORBIDDEN:
                raise
            self.reasons.append(error.detail)
            return None


def _count(found: Iterable[object], most: int) -> int:
    return sum(1 for _ in islice(found, most))


def _rows_of_space(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    free, reserve = sizes.get("freeDiskBytes"), sizes.get("diskReserveBytes", 0)
    if free is not None:
        yield ["free space:", f"{_size(free)}, of which {_size(reserve)} are kept as a reserve"]
    if (used := sizes.get("usedBytes")) is not None:
        most = sizes.get("dataBytesMax")
        yield ["data:", _size(used) if most is None else f"{_size(used)} of at most {_size(most)}"]


def _size(count: int) -> str:
    return f"{count / 2**30:,.1f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"


def _words(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
