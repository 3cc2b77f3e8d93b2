"""The commands `flowserver executions …`: work on executions that only operators of a server do."""

from typing import Annotated
from urllib.parse import quote

import typer

from flowserver.base.urls import SERVER_DEFAULT
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import ServerUrl, Token
from flowserver.cli.rest_client import RestClient

executions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

FlowName = Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")]
ExecutionName = Annotated[str, typer.Argument(metavar="NAME", help="The execution's name.")]


@executions.callback()
def _executions() -> None:
    """Restart executions that a server has parked."""


@executions.command()
def restart(flow: FlowName, name: ExecutionName, server: ServerUrl = SERVER_DEFAULT, token: Token = None) -> None:
    """Restart a parked execution.

    It continues at the same step. If the reason why it was parked is still there, it is parked again.

    \b
    Example:
      flowserver executions restart order order-4711
    """
    path = "/".join(quote(part, safe="") for part in ("v1", "flows", flow, "executions", name, "restart"))
    with RestClient(server, token) as client:
        execution = client.call("POST", f"/{path}")
    if execution.get("parkedError") is not None:
        raise CommandFailed(f"{flow}/{name} is parked again: {execution['parkedError']}")
    typer.echo(f"restarted {flow}/{name}")
