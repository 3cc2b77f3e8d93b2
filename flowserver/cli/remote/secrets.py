"""The commands `flowserver secrets …` that talk to a server. `cli/secrets.py` has the others."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit
from flowserver.cli.remote.output import one_line, show_change, show_list, show_one
from flowserver.cli.remote.session import Session, read_text
from flowserver.cli.server_options import takes_choices

secrets = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The secret's name.")]
FromFile = Annotated[
    Path | None, typer.Option("--from-file", metavar="FILE", help="Read the value from a file, not from stdin.")
]
Force = Annotated[bool, typer.Option("--force", help="Delete it also if something refers to it.")]


@secrets.callback()
@takes_choices
def _secrets() -> None:
    """Set, list and delete secrets of functions.

    URLs and headers of functions refer to a secret as `${secret:NAME}`. Values are stored encrypted, and never shown.
    """


@secrets.command("set")
@remote
def set_secret(session: Session, name: Name, from_file: FromFile = None) -> None:
    """Set a secret to a value read from stdin, or from a file.

    A line break at the end does not count. The value is no argument, because other users of the machine can read those.

    \b
    Examples:
      flowserver secrets set CHARGE_TOKEN < token.txt
      flowserver secrets set CHARGE_TOKEN --from-file token.txt
    """
    value = _value(name, from_file)
    if not value:
        raise CommandFailed("the value is empty", ExitCode.USAGE)
    shown = session.client.put_secret(session.about(name), value)
    show_one(session, shown, name, f"set {name}")


@secrets.command("list")
@remote
def list_secrets(session: Session, limit: Limit = 1_000) -> None:
    """List secrets, and what refers to them.

    \b
    Example:
      flowserver secrets list
    """
    columns = {
        "SECRET": lambda one: one.name,
        "CREATED": lambda one: one.created_time,
        "CHANGED": lambda one: one.last_modified_time,
        "USED-BY": lambda one: one_line(", ".join(f"{use['kind']} {use['name']}" for use in one.used_by), 80) or "-",
    }
    found = session.client.secrets()
    show_list(session, found, columns, lambda one: one.name, "There are no secrets.", limit)


@secrets.command("delete")
@remote
def delete_secret(session: Session, name: Name, force: Force = False) -> None:
    """Delete a secret.

    \b
    Example:
      flowserver secrets delete CHARGE_TOKEN
    """
    session.client.delete_secret(session.about(name), force=force)
    show_change(session, "deleted", name)


def _value(name: str, from_file: Path | None) -> str:
    if from_file is not None:
        text = read_text(str(from_file))
    elif sys.stdin.isatty():
        text = str(typer.prompt(f"Value of {name}", hide_input=True, err=True))
    else:
        text = read_text("-")
    return text.removesuffix("\n").removesuffix("\r")
