"""The commands `flowserver invocations …`: work on asynchronous invocations that only operators of a server do."""

from typing import Annotated

import typer

from flowserver.cli.choices import takes_choices
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.session import Session

invocations = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Service = Annotated[str, typer.Argument(metavar="SERVICE", help="The function's service; - for none.")]
Function = Annotated[str, typer.Argument(metavar="FUNCTION", help="The function's name.")]
InvocationId = Annotated[str, typer.Argument(metavar="ID", help="The invocation's id.")]


@invocations.callback()
@takes_choices
def _invocations() -> None:
    """Restart or stop parked asynchronous invocations."""


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
    typer.echo(f"restarted {service}/{function} {id}")


@invocations.command("stop")
@remote
def stop_invocation(session: Session, service: Service, function: Function, id: InvocationId) -> None:
    """Stop an invocation for good. A parked one ends at once.

    \b
    Example:
      flowserver invocations stop shop charge report-4711
    """
    session.client.change_invocation(f"{service}/{function}", id, "stop")
    typer.echo(f"stopped {service}/{function} {id}")
