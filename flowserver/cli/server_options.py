"""The options of every command that talks to a server. They may be given before the noun, before the verb or after it;
what is nearer to the end wins.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from flowserver.base.urls import SERVER_DEFAULT
from flowserver.cli.environment_variables import CA_FILE_VARIABLE, CONTEXT_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE

OutputName = Literal["table", "json", "yaml", "name"]


def _parameter(name: str, kind: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )


_OUTPUT: Final = _parameter(
    "output",
    OutputName,
    typer.Option("-o", "--format", case_sensitive=False, help="Form of the output: table, json, yaml or name."),
)
_OPTIONS: Final = (
    _parameter(
        "server",
        str,
        typer.Option(
            "--server", metavar="URL", help=f"Address of the server. [env: {URL_VARIABLE}; default: {SERVER_DEFAULT}]"
        ),
    ),
    _parameter(
        "token",
        str,
        typer.Option("--token", metavar="@FILE", help=f"File that holds the bearer token. [env: {TOKEN_VARIABLE}]"),
    ),
    _parameter(
        "ca_file",
        Path,
        typer.Option("--ca-file", help=f"Certificates to trust. [env: {CA_FILE_VARIABLE}, SSL_CERT_FILE]"),
    ),
    _parameter(
        "context",
        str,
        typer.Option("--context", metavar="NAME", help=f"The server of this context. [env: {CONTEXT_VARIABLE}]"),
    ),
    _OUTPUT,
    _parameter("no_color", bool, typer.Option("--no-color", help="Print without colours. [env: NO_COLOR]")),
    _parameter("quiet", bool, typer.Option("--quiet", "-q", help="Print no notes and no progress.")),
)


_CONTEXT: Final = inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


def takes_choices(callback: Callable[..., None]) -> Callable[..., None]:
    """Turn the callback of a group into a callback that also takes the common options, for the commands below it."""

    def keep(_: Mapping[str, Any], **own: Any) -> None:
        callback(**own)

    return with_choices(keep, callback, _parameters_of(callback))


def formatted(command: Callable[..., None]) -> Callable[..., None]:
    """Turn `command(output, …)` into a command with the option `-o`; `output` is a name of `OutputName`."""

    def run(chosen: Mapping[str, Any], **own: Any) -> None:
        command(chosen.get("output", "table"), **own)

    return with_choices(run, command, _parameters_of(command)[1:], (_OUTPUT,))


def with_choices(
    command: Callable[..., None],
    described: Callable[..., None],
    own: list[inspect.Parameter],
    options: Sequence[inspect.Parameter] = _OPTIONS,
) -> Callable[..., None]:
    """A command that has these parameters and common options, of which it is given those that were chosen.

    `described` has its documentation.
    """

    @wraps(described)
    def with_options(**values: Any) -> None:
        context: typer.Context = values.pop("typer_context")
        given = {each.name: values.pop(each.name) for each in options}
        context.obj = dict(context.obj or {}) | {name: value for name, value in given.items() if value is not None}
        flags = [name for each in context.command.params for name in each.opts if name.startswith("--")]
        command({**context.obj, "command": context.command_path, "flags": flags}, **values)

    keyword_only = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    with_options.__signature__ = inspect.Signature([_CONTEXT, *keyword_only, *options])  # type: ignore[attr-defined]
    return with_options


def _parameters_of(command: Callable[..., None]) -> list[inspect.Parameter]:
    return list(inspect.signature(command).parameters.values())
