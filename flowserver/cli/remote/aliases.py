"""The commands `flowserver aliases …`."""

from typing import Annotated

import typer

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import FlowName, Limit, Yes, confirm
from flowserver.cli.remote.output import one_line, show_change, show_list, show_one
from flowserver.cli.remote.session import Session
from flowserver.cli.server_options import takes_choices
from flowserver.client.results import Alias

aliases = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="ALIAS", help="The alias's name.")]
Routes = Annotated[
    list[str],
    typer.Option("--route", metavar="VERSION[=PERCENT]", help="A version and its share of the starts; one or two."),
]
Description = Annotated[str | None, typer.Option("--description", help="What it is for.")]


@aliases.callback()
@takes_choices
def _aliases() -> None:
    """Name versions, and divide starts among them."""


@aliases.command("list")
@remote
def list_aliases(session: Session, flow: FlowName, limit: Limit = 1_000) -> None:
    """List the aliases of a flow.

    \b
    Example:
      flowserver aliases list order
    """
    found = session.client.aliases(session.flow(flow))
    columns = {
        "ALIAS": lambda one: one.name,
        "ROUTES": _shown_routes,
        "DESCRIPTION": lambda one: one_line(one.description, 60),
    }
    show_list(session, found, columns, lambda one: one.name, f"{flow} has no alias.", limit)


@aliases.command("create")
@remote
def create_alias(session: Session, flow: FlowName, alias: Name, route: Routes, description: Description = None) -> None:
    """Create an alias.

    \b
    Example:
      flowserver aliases create order prod --route 3
    """
    found = session.client.create_alias(session.flow(flow), alias, _routes(route), description or "")
    show_one(session, found, found.name, f"created {alias}: {_shown_routes(found)}")


@aliases.command("update")
@remote
def update_alias(session: Session, flow: FlowName, alias: Name, route: Routes, description: Description = None) -> None:
    """Change the routes of an alias.

    \b
    Examples:
      flowserver aliases update order prod --route 3=90 --route 4=10
      flowserver aliases update order prod --route 4
    """
    found = session.client.update_alias(session.flow(flow), session.alias(alias), _routes(route), description)
    show_one(session, found, found.name, f"updated {alias}: {_shown_routes(found)}")


@aliases.command("delete")
@remote
def delete_alias(session: Session, flow: FlowName, alias: Name, yes: Yes = False) -> None:
    """Delete an alias. Its versions stay.

    \b
    Example:
      flowserver aliases delete order prod --yes
    """
    confirm(f"Delete the alias {alias} of {flow}?", yes)
    session.client.delete_alias(session.flow(flow), session.alias(alias))
    show_change(session, "deleted", alias)


def _routes(given: list[str]) -> dict[int, int]:
    """The weights by version; without a percentage what the others leave of a hundred."""
    routes: dict[int, int] = {}
    for text in given:
        version, _, weight = text.partition("=")
        if not version.isdecimal() or not (weight or "0").isdecimal():
            raise CommandFailed(f"--route is VERSION or VERSION=PERCENT, not {text!r}", ExitCode.USAGE)
        routes[int(version)] = int(weight) if weight else 100 - sum(routes.values())
    return routes


def _shown_routes(alias: Alias) -> str:
    return ", ".join(f"version {each['version']} {each['weight']} %" for each in alias.routes)
