"""Sign-in links that commands make, straight in the database."""

from typing import Annotated, Any

import typer

from flowserver.base.clock import SystemClock, format_instant
from flowserver.base.limits import Limits
from flowserver.base.urls import SERVER_DEFAULT, host_of
from flowserver.cli.command_records import record_command
from flowserver.cli.document_output import show_document
from flowserver.cli.environment_variables import URL_VARIABLE
from flowserver.operations.sign_in_links import NewSignInLink, make_sign_in_link
from flowserver.store.sign_in_links import insert_link
from flowserver.store.sql.database import Database

AsLink = Annotated[
    bool,
    typer.Option("--sign-in-link", help="Show a link in place of the key; the browser that opens it gets the key."),
]
LinkServer = Annotated[
    str,
    typer.Option(
        "--server", metavar="URL", help=f"Address for the link. [env: {URL_VARIABLE}; default: {SERVER_DEFAULT}]"
    ),
]


def add_sign_in_link(database: Database, limits: Limits, **key: Any) -> NewSignInLink:
    """Make a link, with its record in the audit. `key`: how its key will be, as `make_sign_in_link` takes it."""
    now_ms = SystemClock().now_ms()
    new = make_sign_in_link(now_ms, limits.sign_in_link_seconds, **key)
    with database.write() as connection:
        insert_link(connection, new.link, now_ms)
        record_command(connection, "keys.link", "keys")
    return new


def require_url(server: str) -> None:
    """Raises BadParameter if an address is given that is none."""
    if server and not host_of(server):
        raise typer.BadParameter("not a URL such as https://flows.example.com", param_hint="--server")


def show_link(new: NewSignInLink, server: str, output: str) -> None:
    """Print the link to the server with that address."""
    url, end = new.url(server), format_instant(new.link.expires_at)
    if output in ("table", "name"):
        typer.echo(url)
    else:
        show_document(output, {"signInLink": url, "expiresTime": end})
    typer.echo(f"It works once, until {end}. Send it to one person only: it is as good as the key.", err=True)
