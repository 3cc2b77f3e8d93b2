"""The command `flowserver status`."""

from datetime import UTC, datetime
from itertools import islice
from typing import Final

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.output import show_names
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import instant_of
from flowserver.cli.tables import aligned

COUNTED_MAX: Final = 1_000
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
    "flowserver_stuck_executions": ("stuckExecutions", "flowserver doctor"),
    "flowserver_calls_waiting": ("callsWaiting", ""),
}
"""Metrics that are shown: under which name, and the command that shows more of what needs a look."""

_FAILED: Final = "flowserver executions list --status failed --ended-since 1d"
_TASKS: Final = "flowserver tasks list"


@remote
def status(session: Session) -> None:
    """Show the state of the server, and what needs attention.

    It shows whether the server is ready and accepts new work, and counts running, parked, stuck and failed executions,
    those that wait for a redrive, and waiting tasks and calls. Notes say why new work is refused, and name the commands
    that show more.

    \b
    Examples:
      flowserver status
      flowserver status -o json
    """
    client = session.client
    readiness = client.readiness()
    ready, refused = readiness.ready, readiness.new_work_refused
    values = client.metrics()
    counts = {name: int(values[metric]) for metric, (name, _) in _COUNTS.items() if metric in values}
    since = instant_of("1d", "", datetime.now(UTC))
    failed = sum(1 for _ in islice(session.executions(None, status="Failed", ended_from=since), COUNTED_MAX))
    tasks = sum(1 for _ in islice(client.tasks(), TASKS_COUNTED_MAX))
    further = {"waitingTasks": tasks, "failedInOneDay": failed}
    document = {"server": session.url, "ready": ready, "newWorkRefused": refused, **counts, **further}
    if session.output == "name":
        show_names([session.url])
        return
    if session.output != "table":
        show_document(session.output, document)
        return
    rows = [["server:", session.url], ["ready:", "yes" if ready else "no"]]
    if refused:
        rows.append(["new work:", "refused"])
    rows += [[f"{_words(name)}:", str(counts[name])] for name, _ in _COUNTS.values() if name in counts]
    rows.append(["waiting tasks:", f"{tasks}{' or more' if tasks == TASKS_COUNTED_MAX else ''}"])
    rows.append(["failed in one day:", f"{failed}{' or more' if failed == COUNTED_MAX else ''}"])
    typer.echo(aligned(rows))
    if refused:
        session.note(f"New work is refused: {refused}.")
    found = counts | further
    for name, command in [*_COUNTS.values(), ("waitingTasks", _TASKS), ("failedInOneDay", _FAILED)]:
        if command and found.get(name):
            session.note(f"Look: {command}")


def _words(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
