"""The program `flowserver`: its commands put together."""

from typing import Annotated

import typer

from flowserver import __version__
from flowserver.cli.doctor import doctor
from flowserver.cli.executions import executions
from flowserver.cli.failures import Commands
from flowserver.cli.functions import functions
from flowserver.cli.keys import keys
from flowserver.cli.migrate import migrate
from flowserver.cli.serve import serve
from flowserver.cli.validate import validate

app = typer.Typer(
    name="flowserver",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command()(migrate)
app.command()(validate)
app.command()(doctor)
app.add_typer(executions, name="executions")
app.add_typer(keys, name="keys")
app.add_typer(functions, name="functions")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"flowserver {__version__}")
        raise typer.Exit


@app.callback()
def _flowserver(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A self-hosted server for CloudFlow (FnF) v1 flows.

    \b
    Start here:
      flowserver serve                    run the server on http://127.0.0.1:8080
      flowserver validate flow.yaml       check a definition without a server
      flowserver functions serve f.yaml   host Python functions for it to call
    """
