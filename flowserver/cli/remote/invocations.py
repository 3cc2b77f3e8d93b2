"""The commands `flowserver invocations …`: work on asynchronous invocations that only operators of a server do."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit
from flowserver.cli.remote.output import one_line, show_change, show_list
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import shown_instant
from flowserver.cli.server_options import takes_choices
from flowserver.client.results import Invocation

invocations = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Service = Annotated[str, typer.Argument(metavar="SERVICE", help="The function's service; - for none.")]
Function = Annotated[str, typer.Argument(metavar="FUNCTION", help="The function's name.")]
InvocationId = Annotated[str, typer.Argument(metavar="ID", help="The invocation's id.")]


@invocations.callback()
@takes_choices
def _invocations() -> None:
    """Restart or stop parked asynchronous invocations."""


@invocations.command("list")
@remote
def list_invocations(session: Session, limit: Limit = 1_000) -> None:
    """List the parked invocations.

    \b
    Example:
      flowserver invocations list
    """
    found = session.client.parked_invocations()
    now = datetime.now(UTC)
    columns = {
        "INVOCATION": _path,
        "CREATED": lambda one: shown_instant(one.created_time, now),
        "PARKED BECAUSE": lambda one: one_line(one.parked_error or "", 80),
    }
    show_list(session, found, columns, _path, "No invocation is parked.", limit)


def _path(invocation: Invocation) -> str:
    return f"{invocation.service}/{invocation.function} {invocation.invocation_id}"


@invocations.command("restart")
@remote
def restart_invocation(session: Session, service: Service, function: Function, id: InvocationId) -> None:
    """Restart a parked invocation.

    If its function was being called, it is called again. If the reason why the invocation was parked is still there, it
    is parked again: flowserver doctor shows that.

    \b
    Example:
      flowserver invocations restart shop charge report-4711
    """
    session.client.change_invocation(f"{service}/{function}", id, "restart")
    show_change(session, "restarted", f"{service}/{function} {id}")


@invocations.command("stop")
@remote
def stop_invocation(session: Session, service: Service, function: Function, id: InvocationId) -> None:
    """Stop an invocation for good. A parked one ends at once.

    \b
    Example:
      flowserver invocations stop shop charge report-4711
    """
    session.client.change_invocation(f"{service}/{function}", id, "stop")
    show_change(session, "stopped", f"{service}/{function} {id}")
