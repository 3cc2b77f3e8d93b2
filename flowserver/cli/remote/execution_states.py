"""The states of executions: what people ask for, and what they see."""

from typing import Annotated, Final

import typer

from flowserver.base.lazy_import import load
from flowserver.client.results import Execution

_NOT_ONE_OF: Final = "flowserver.cli.value_errors:not_one_of"
"""Loaded for a word that is no state."""

STATUSES: Final = {
    "running": "Running",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "stopped": "Stopped",
    "timedout": "TimedOut",
}


def _status(text: str | None) -> str | None:
    """The key of `STATUSES` that is meant; raises typer.BadParameter."""
    if text is None or text.lower() in STATUSES:
        return None if text is None else text.lower()
    if text.lower().startswith("wait"):
        raise typer.BadParameter("executions that wait for a redrive are running; list them with --waiting-redrive")
    if text.lower() == "parked":
        raise typer.BadParameter("parked executions are running; list them with --parked")
    raise typer.BadParameter(load(_NOT_ONE_OF)(repr(text), STATUSES))


OfStatus = Annotated[
    str | None,
    typer.Option(
        "--status",
        metavar=f"[{'|'.join(STATUSES)}]",
        callback=_status,
        autocompletion=lambda: list(STATUSES),
        help="Only executions in this state.",
    ),
]


def state_of(execution: Execution) -> str:
    """Its status, and that it is parked or how many of its steps wait for a redrive: in all tables alike."""
    if execution.parked_error is not None:
        return f"{execution.status}; parked"
    return with_waits(execution.status, execution.waiting_steps or 0)


def with_waits(status: str, waiting: int) -> str:
    """A status, and how many steps wait for a redrive, if any."""
    if not waiting:
        return status
    return f"{status}; {waiting} {'step waits' if waiting == 1 else 'steps wait'} for a redrive"
