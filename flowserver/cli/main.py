"""The program `flowserver`: all commands, each loaded when it is called or described.

Nothing else of flowserver is imported here: the modules that a command needs are loaded with it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

import flowserver
from flowserver.base.lazy_import import load
from flowserver.cli.environment_variables import unknown_to_commands
from flowserver.cli.option_conversions import converted_if_needed, without_needless_conversions
from flowserver.cli.server_options import takes_choices


class Entry(NamedTuple):
    """Where a command is, and what it does: the first sentence of its help, with which lists describe it unloaded."""

    place: str
    summary: str


COMMANDS: Final = {
    "start": Entry("flowserver.cli.remote.start:start", "Start an execution of a flow."),
    "watch": Entry("flowserver.cli.remote.watch:watch", "Attach to an execution and show its steps."),
    "apply": Entry("flowserver.cli.remote.apply:apply", "Apply files and folders of flows."),
    "status": Entry("flowserver.cli.remote.status:status", "Show the state of the server, and what needs attention."),
    "flows": Entry("flowserver.cli.remote.flows:flows", "List, show, describe, compare, set and delete flows."),
    "executions": Entry("flowserver.cli.remote.executions:executions", "List, describe, stop and redrive executions."),
    "versions": Entry("flowserver.cli.remote.versions:versions", "Publish definitions of flows under numbers."),
    "aliases": Entry("flowserver.cli.remote.aliases:aliases", "Name versions, and divide starts among them."),
    "schedules": Entry("flowserver.cli.remote.schedules:schedules", "Start executions of flows at set times."),
    "tasks": Entry("flowserver.cli.remote.tasks:tasks", "List tasks that wait for a report, and report on them."),
    "functions": Entry("flowserver.cli.remote.functions:functions", "Register functions, or host your own."),
    "invocations": Entry(
        "flowserver.cli.remote.invocations:invocations", "Restart or stop parked asynchronous invocations."
    ),
    "queues": Entry("flowserver.cli.remote.queues:queues", "Look at queues, send to them, purge them."),
    "topics": Entry("flowserver.cli.remote.topics:topics", "Look at topics, and publish to them."),
    "audit": Entry("flowserver.cli.remote.audit:audit", "See who did what, and who was refused."),
    "context": Entry("flowserver.cli.remote.context_commands:contexts", "Name servers, and choose one."),
    "validate": Entry("flowserver.cli.validate:validate", "Check definitions, without a server."),
    "prove": Entry("flowserver.cli.prove:prove", "Find what can go wrong in flows, without a server."),
    "test": Entry("flowserver.cli.flow_tests:test", "Run flow tests, in virtual time and without a server."),
    "test record": Entry("flowserver.cli.remote.recording:record_test", "Print a flow test that repeats an execution."),
    "sim": Entry("flowserver.cli.simulations:sim", "Run flows many times with faults, without a server."),
    "schema": Entry("flowserver.cli.schema:schema", "Print the JSON Schema of flows, or of flow tests, for editors."),
    "lsp": Entry("flowserver.cli.lsp:lsp", "Serve an editor: findings, completion, navigation."),
    "serve": Entry("flowserver.cli.serve:serve", "Run the server until Ctrl-C or SIGTERM."),
    "migrate": Entry("flowserver.cli.migrate:migrate", "Bring the database up to date, or create it."),
    "doctor": Entry("flowserver.cli.doctor:doctor", "Check the database, and repair it."),
    "backup": Entry("flowserver.cli.backup:backup", "Back the SQLite database up, also while a server runs on it."),
    "restore": Entry("flowserver.cli.restore:restore", "Replace the SQLite database with a backup."),
    "fence": Entry("flowserver.cli.fence:fence", "Carry over to a restored database what must stay done."),
    "copy": Entry("flowserver.cli.copy:copy", "Copy all data into an empty database."),
    "secrets": Entry("flowserver.cli.secrets:secrets", "Set, list and delete secrets of functions."),
    "keys": Entry("flowserver.cli.keys:keys", "Create, list, disable and delete access keys."),
}
"""Each command's function, or each group's `Typer`, in the order of the overview.

`test` is no group, because paths follow it; so a verb of it has both words as its name.
"""


_MEANT_BY: Final = "flowserver.cli.command_suggestions:meant_by"
_VERBS_MEANT_BY: Final = "flowserver.cli.command_suggestions:verbs_meant_by"
_DONE_ELSEWHERE: Final = "flowserver.cli.command_suggestions:done_elsewhere"
"""Loaded for a word that is no command."""

_NO_COMMAND: Final = "No such command {!r}. {}"

_EXPLAIN: Final = "flowserver.cli.usage_errors:explain"
_REWORD: Final = "flowserver.cli.value_errors:reword"
"""Loaded for a command that is written wrongly."""


def _everywhere(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", hidden=True, expose_value=False)] = False,
    no_color: Annotated[bool, typer.Option("--no-color", hidden=True, expose_value=False)] = False,
) -> None:
    """Takes the options that every command takes; they do nothing where there are no notes and no colours."""


@cache
def _options_everywhere() -> tuple[Any, ...]:
    alone = typer.Typer(add_completion=False)
    alone.command()(_everywhere)
    return tuple(typer.main.get_command(alone).params)


class _TakesAll:
    """A command or a group that takes the options which every command takes."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, and those that every command takes."""
        own = super().get_params(ctx)  # type: ignore[misc]
        known = {name for each in own for name in each.opts}
        return [*own, *(each for each in _options_everywhere() if known.isdisjoint(each.opts))]


class Command(_TakesAll, TyperCommand):
    """A command that says how it is written if it has too many words, or lacks one.

    A word that begins with `-/` is no option: it names a function without a service.
    """

    def make_parser(self, ctx: Any) -> Any:
        """The parser of its words."""
        parser: Any = super().make_parser(ctx)
        process_option = parser._process_opts

        def process(word: str, state: Any) -> None:
            if word.startswith("-/"):
                state.largs.append(word)
            else:
                process_option(word, state)

        parser._process_opts = process
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set the parameters of the context."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            _give_context(error, ctx)
            load(_EXPLAIN)(error, self, given)
            load(_REWORD)(error)
            raise


class Group(TyperGroup):
    """Commands, and the options that stand before them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set the parameters of the context."""
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            _give_context(error, ctx)
            load(_REWORD)(error)
            raise


def _give_context(error: Any, ctx: Any) -> None:
    """Say which command an error is of: that of an option without its value does not know."""
    if getattr(error, "ctx", ctx) is None:
        error.ctx, error.cmd = ctx, ctx.command


class Noun(_TakesAll, Group):
    """The commands of a noun."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the verb; the error for another word says which was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            if way := load(_DONE_ELSEWHERE)(f"{ctx.info_name} {args[0]}"):
                error.message = _NO_COMMAND.format(args[0], way)
            elif meant := load(_VERBS_MEANT_BY)(ctx.info_name, args[0], self.commands):
                error.message = _no_such_command(args[0], meant)
            raise


def _no_such_command(word: str, meant: Sequence[str]) -> str:
    return _NO_COMMAND.format(word, f"Did you mean {', '.join(map(repr, meant))}?")


def _load_command(name: str) -> Any:
    """The command of typer's; raises KeyError."""
    loaded = load(COMMANDS[name].place)
    if isinstance(loaded, typer.Typer):
        loaded.info.cls = Noun
        for each in loaded.registered_commands:
            each.cls = Command
        return without_needless_conversions(typer.main.get_command(loaded))
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=Command)(loaded)
    return without_needless_conversions(typer.main.get_command(alone))


def _summary(name: str) -> TyperCommand:
    """The command as lists show it; raises KeyError."""
    return TyperCommand(name, help=COMMANDS[name].summary)


class _Made(Mapping[str, Any]):
    """The commands by name, made one by one."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self._make = make

    def __getitem__(self, name: str) -> Any:
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(Group):
    """The commands. A command that fails with a known error ends with one line and an `ExitCode`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Made(_load_command)

    @contextmanager
    def _unloaded(self) -> Iterator[None]:
        """Inside, the commands are their summaries: to load all takes ten times as long as to list them."""
        loaded, self.commands = self.commands, _Made(_summary)
        try:
            yield
        finally:
            self.commands = loaded

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with self._unloaded():
            super().format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """What the first word may be, for the shell."""
        with self._unloaded():
            return [each for each in super().shell_complete(ctx, incomplete) if " " not in each.value]

    def get_params(self, ctx: Any) -> Any:
        """The options that stand before the command."""
        return [converted_if_needed(each) for each in super().get_params(ctx)]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first word, or of two; the error for another says which were probably meant."""
        if " ".join(args[:2]) in COMMANDS:
            args = [" ".join(args[:2]), *args[2:]]
        try:
            return super().resolve_command(ctx, args)
        except TyperException as error:
            if way := load(_DONE_ELSEWHERE)(args[0]):
                error.message = _NO_COMMAND.format(args[0], way)
            elif meant := load(_MEANT_BY)(args[0], self.commands):
                error.message = _no_such_command(args[0], meant)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with load("flowserver.cli.failures:ending_well")():
            if others := unknown_to_commands():
                load("flowserver.cli.options:require_known_variables")(others)
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
      flowserver test flows/              run the tests beside definitions
      flowserver apply flows/             give it the flows of a folder
      flowserver start order --wait       start one, and watch its steps
      flowserver functions serve f.yaml   host Python functions for it to call
    """
