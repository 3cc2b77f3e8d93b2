"""The commands `flowserver versions …`."""

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

import typer

from flowserver.cli.choices import takes_choices
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import FlowName, Limit, Yes, confirm
from flowserver.cli.remote.output import one_line, show_list, show_one
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import shown_instant

versions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Number = Annotated[int, typer.Argument(metavar="VERSION", help="The version's number.")]
Description = Annotated[str, typer.Option("--description", help="What has changed, in your words.")]


@versions.callback()
@takes_choices
def _versions() -> None:
    """Publish definitions of flows under numbers."""


@versions.command("list")
@remote
def list_versions(session: Session, flow: FlowName, limit: Limit = 1_000) -> None:
    """List the published versions of a flow, the newest first.

    \b
    Example:
      flowserver versions list order
    """
    now = datetime.now(UTC)
    found = list(islice(session.client.versions(session.flow(flow)), limit))
    columns = {
        "VERSION": lambda one: str(one.version),
        "CREATED": lambda one: shown_instant(one.created_time, now),
        "DESCRIPTION": lambda one: one_line(one.description, 60),
    }
    show_list(session, found, columns, lambda one: str(one.version), f"{flow} has no published version.")


@versions.command("publish")
@remote
def publish_version(session: Session, flow: FlowName, description: Description = "") -> None:
    """Publish the definition that a flow has now.

    \b
    Example:
      flowserver versions publish order --description 'asks for the postcode'
    """
    found = session.client.publish_version(session.flow(flow), description)
    show_one(session, found, str(found.version), f"published version {found.version} of {flow}")


@versions.command("delete")
@remote
def delete_version(session: Session, flow: FlowName, version: Number, yes: Yes = False) -> None:
    """Delete a version that no alias and no running execution uses.

    \b
    Example:
      flowserver versions delete order 2 --yes
    """
    confirm(f"Delete version {version} of {flow}?", yes)
    session.client.delete_version(session.flow(flow), version)
    typer.echo(f"deleted version {version} of {flow}")
