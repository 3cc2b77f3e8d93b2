"""The commands `flowserver invocations …`: work on asynchronous invocations that only operators of a server do."""

from typing import Annotated
from urllib.parse import quote

import typer

from flowserver.base.urls import SERVER_DEFAULT
from flowserver.cli.options import ServerUrl, Token
from flowserver.cli.rest_client import RestClient

invocations = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Service = Annotated[str, typer.Argument(metavar="SERVICE", help="The function's service; - for none.")]
Function = Annotated[str, typer.Argument(metavar="FUNCTION", help="The function's name.")]
InvocationId = Annotated[str, typer.Argument(metavar="ID", help="The invocation's id.")]


@invocations.callback()
def _invocations() -> None:
    """Restart or stop parked asynchronous invocations."""


@invocations.command()
def restart(
    service: Service, function: Function, id: InvocationId, server: ServerUrl = SERVER_DEFAULT, token: Token = None
) -> None:
    """Restart a parked invocation.

    If its function was being called, it is called again. If the reason why the invocation was parked is still there, it
    is parked again: flowserver doctor shows that.

    \b
    Example:
      flowserver invocations restart shop charge report-4711
    """
    _post(server, token, service, function, id, "restart")
    typer.echo(f"restarted {service}/{function} {id}")


@invocations.command()
def stop(
    service: Service, function: Function, id: InvocationId, server: ServerUrl = SERVER_DEFAULT, token: Token = None
) -> None:
    """Stop an invocation for good. A parked one ends at once.

    \b
    Example:
      flowserver invocations stop shop charge report-4711
    """
    _post(server, token, service, function, id, "stop")
    typer.echo(f"stopped {service}/{function} {id}")


def _post(server: str, token: str | None, service: str, function: str, id: str, action: str) -> None:
    parts = ("v1", "functions", service, function, "invocations", id, action)
    with RestClient(server, token) as client:
        client.call("POST", "/" + "/".join(quote(part, safe="") for part in parts))
