"""The commands `flowserver context …`: named servers."""

import os
import re
from typing import Annotated, Final

import typer
from msgspec.structs import asdict, replace

from flowserver.base.urls import host_of
from flowserver.cli.document_output import show_document
from flowserver.cli.environment_variables import URL_VARIABLE
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.contexts import Contexts, Place, read_contexts, require_context, write_contexts
from flowserver.cli.remote.output import show_change, show_names
from flowserver.cli.remote.session import Session
from flowserver.cli.server_options import takes_choices
from flowserver.cli.tables import aligned

contexts = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The context's name.")]


@contexts.callback()
@takes_choices
def _contexts() -> None:
    """Name servers, and choose one.

    They are kept in `flowserver/contexts.json` in your configuration folder, which only you can read. `--context NAME`
    chooses one for a command. FLOWSERVER_URL overrides the context in use.
    """


@contexts.command("list")
@remote
def list_contexts(session: Session) -> None:
    """List the contexts. Tokens are not shown.

    \b
    Example:
      flowserver context list
    """
    known = read_contexts()
    if session.output == "name":
        show_names(known.places)
    elif session.output != "table":
        show_document(session.output, [_document(known, name) for name in known.places])
    elif known.places:
        rows = [
            ["*" if name == known.current else "", name, place.server or "", "yes" if place.token else "no"]
            for name, place in known.places.items()
        ]
        typer.echo(aligned([["IN USE", "CONTEXT", "SERVER", "TOKEN"], *rows]))
    else:
        session.note("There are no contexts: flowserver context set NAME --server URL")


@contexts.command("set")
@remote
def set_context(session: Session, name: Name) -> None:
    """Create a context, or change the given fields of one.

    The first context is in use at once.

    \b
    Examples:
      flowserver context set local --server http://127.0.0.1:8080
      flowserver context set prod --server https://flows.example.com --token @token --ca-file ca.pem
    """
    known = read_contexts()
    place = known.places.get(name, Place())
    changes = {key: value for key, value in asdict(session.given_place).items() if value is not None}
    changed = replace(place, **changes)
    if not NAME.fullmatch(name):
        raise CommandFailed("the name of a context is 1 to 64 letters, digits, '.', '_' and '-'", ExitCode.USAGE)
    if changed.server is None or host_of(changed.server) is None:
        raise CommandFailed("--server must be a URL such as https://HOST:PORT", ExitCode.USAGE)
    write_contexts(Contexts({**known.places, name: changed}, known.current or name))
    show_change(session, "set", name)


@contexts.command("use")
@remote
def use_context(session: Session, name: Name) -> None:
    """Choose the context of commands without --context.

    \b
    Example:
      flowserver context use prod
    """
    known = read_contexts()
    require_context(known, name)
    write_contexts(replace(known, current=name))
    show_change(session, "used", name, f"using {name}, {known.places[name].server}")
    if os.environ.get(URL_VARIABLE):
        session.note(f"{URL_VARIABLE} is set and goes before it: unset it, or use --context {name}")


@contexts.command("delete")
@remote
def delete_context(session: Session, name: Name) -> None:
    """Delete a context, with its token.

    \b
    Example:
      flowserver context delete prod
    """
    known = read_contexts()
    require_context(known, name)
    kept = {each: place for each, place in known.places.items() if each != name}
    write_contexts(Contexts(kept, None if known.current == name else known.current))
    show_change(session, "deleted", name)


def _document(known: Contexts, name: str) -> dict[str, object]:
    place = known.places[name]
    return {
        "name": name,
        "server": place.server,
        "caFile": place.ca_file,
        "hasToken": place.token is not None,
        "inUse": name == known.current,
    }
