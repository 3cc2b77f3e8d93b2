"""The program `flowserver`: all commands, each loaded when it is called or described.

Nothing else of flowserver is imported here: the modules that a command needs are loaded with it.
"""

import gc
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

import flowserver
from flowserver.base.lazy_import import load
from flowserver.cli.conversions import converted_if_needed, without_needless_conversions
from flowserver.cli.environment_variables import unknown_to_commands
from flowserver.cli.server_options import takes_choices

COMMANDS: Final = {
    "start": "flowserver.cli.remote.start:start",
    "watch": "flowserver.cli.remote.watch:watch",
    "apply": "flowserver.cli.remote.apply:apply",
    "status": "flowserver.cli.remote.status:status",
    "flows": "flowserver.cli.remote.flows:flows",
    "executions": "flowserver.cli.remote.executions:executions",
    "versions": "flowserver.cli.remote.versions:versions",
    "aliases": "flowserver.cli.remote.aliases:aliases",
    "schedules": "flowserver.cli.remote.schedules:schedules",
    "tasks": "flowserver.cli.remote.tasks:tasks",
    "functions": "flowserver.cli.remote.functions:functions",
    "invocations": "flowserver.cli.remote.invocations:invocations",
    "queues": "flowserver.cli.remote.queues:queues",
    "topics": "flowserver.cli.remote.topics:topics",
    "context": "flowserver.cli.remote.context_commands:contexts",
    "validate": "flowserver.cli.validate:validate",
    "serve": "flowserver.cli.serve:serve",
    "migrate": "flowserver.cli.migrate:migrate",
    "doctor": "flowserver.cli.doctor:doctor",
    "restore": "flowserver.cli.restore:restore",
    "keys": "flowserver.cli.keys:keys",
}
"""The place of each command's function, or of each group's `Typer`, in the order of the overview."""


_MEANT_BY: Final = "flowserver.cli.command_suggestions:meant_by"
"""Loaded for a word that is no command."""


@cache
def _load_uncollected(place: str) -> Any:
    """Load, without the garbage collector, which would take a sixth of the time: it goes through all modules, again
    and again, and finds next to nothing. They stay, so it need not go through them later either.
    """
    gc.disable()
    try:
        return load(place)
    finally:
        gc.freeze()
        gc.enable()


def _load_command(name: str) -> Any:
    """The command of typer's; raises KeyError."""
    loaded = _load_uncollected(COMMANDS[name])
    if isinstance(loaded, typer.Typer):
        return without_needless_conversions(typer.main.get_command(loaded))
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(loaded)
    return without_needless_conversions(typer.main.get_command(alone))


class _Loaded(Mapping[str, Any]):
    """The commands by name."""

    def __getitem__(self, name: str) -> Any:
        return _load_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """The commands. A command that fails with a known error ends with one line and an `ExitCode`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Loaded()

    def get_params(self, ctx: Any) -> Any:
        """The options that stand before the command."""
        return [converted_if_needed(each) for each in super().get_params(ctx)]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first word; the error for another says which were probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            if meant := load(_MEANT_BY)(args[0], self.commands):
                error.message = f"No such command {args[0]!r}. Did you mean {', '.join(map(repr, meant))}?"
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _load_uncollected("flowserver.cli.failures:ending_well")():
            if others := unknown_to_commands():
                _load_uncollected("flowserver.cli.options:require_known_variables")(others)
            return super().invoke(ctx)


app = typer.Typer(
    name="flowserver",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"flowserver {flowserver.__version__}")
        raise typer.Exit


@app.callback()
@takes_choices
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
      flowserver apply flows/             give it the flows of a folder
      flowserver start order --wait       start one, and watch its steps
      flowserver functions serve f.yaml   host Python functions for it to call
    """
