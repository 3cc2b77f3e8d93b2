"""The reference of the command line, made from the commands themselves."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from flowserver.cli import server_options
from flowserver.cli.main import app

COMMON = {each.name for each in server_options._OPTIONS}


def commands() -> str:
    """Every command: its usage, its effect, examples, and the options that not all commands have."""
    return "\n\n".join(_section(names, command) for names, command in _all(get_command(app), ()))


def common_options() -> str:
    """The options of every command that calls a server."""
    root = get_command(app)
    return _options([each for each in root.params if each.name in COMMON])


def _all(group: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _all(command, (*names, name))
        else:
            yield (*names, name), command


def _section(names: tuple[str, ...], command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join(["flowserver", *names, *(_usage(each) for each in arguments)])
    own = [each for each in command.params if each.param_type_name == "option" and each.name not in COMMON]
    own = [each for each in own if not each.is_eager and not each.hidden]
    parts = [f"### flowserver {' '.join(names)}", f"```text\n{usage}\n```", _text(command.help or "")]
    if names != ("serve",):  # its options are the settings, which have their own table
        parts.append(_options([*arguments, *own]))
    return "\n\n".join(part for part in parts if part)


def _usage(argument: Any) -> str:
    name = _metavar(argument)
    return f"{name}{'...' if argument.nargs == -1 else ''}" if argument.required else f"[{name}]"


def _text(help: str) -> str:
    """The help as Markdown: text with a fixed layout becomes a block of code."""
    blocks = re.split(r"\n\n", inspect.cleandoc(help))
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    if not block.startswith("\b"):
        return " ".join(block.split())
    head, _, rest = block.removeprefix("\b\n").partition("\n")
    return f"{head}\n\n```text\n{inspect.cleandoc(rest)}\n```"


def _options(parameters: list[Any]) -> str:
    if not parameters:
        return ""
    rows = [(f"`{_name(each)}`", (each.help or "").replace("|", "\\|")) for each in parameters]
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {meaning} |" for name, meaning in rows)]
    return "\n".join(lines)


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _metavar(parameter)
    flags = ", ".join(parameter.opts)
    value = "" if parameter.is_flag else f" {_metavar(parameter)}"
    return f"{flags}{value}".replace("|", "\\|")


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper() if not parameter.metavar else str(parameter.metavar)
