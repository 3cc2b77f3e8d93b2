"""The commands `flowserver versions …`."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from flowserver.cli.remote.command import remote
from flowserver.cli.remote.diffs import diff_of, end_with_diff
from flowserver.cli.remote.flows import FlowName, Limit, Yes, confirm
from flowserver.cli.remote.output import one_line, show_change, show_list, show_one
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import shown_instant
from flowserver.cli.server_options import takes_choices

versions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Number = Annotated[int, typer.Argument(metavar="VERSION", help="The version's number.")]
Other = Annotated[
    int | None,
    typer.Argument(metavar="VERSION", help="The version to compare with; default: the flow's current definition."),
]
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
    found = session.client.versions(session.flow(flow))
    columns = {
        "VERSION": lambda one: str(one.version),
        "CREATED": lambda one: shown_instant(one.created_time, now),
        "DESCRIPTION": lambda one: one_line(one.description, 60),
    }
    show_list(session, found, columns, lambda one: str(one.version), f"{flow} has no published version.", limit)


@versions.command("get")
@remote
def get_version(session: Session, flow: FlowName, version: Number) -> None:
    """Show the definition of a version, as it was published.

    `-o json` shows the whole version, with its description and time.

    \b
    Examples:
      flowserver versions get order 3 > order.yaml
      flowserver versions get order 3 -o json
    """
    found = session.client.get_version(session.flow(flow), version)
    if session.output == "yaml":
        typer.echo(found.definition, nl=not found.definition.endswith("\n"))
    else:
        show_one(session, found, str(found.version), found.definition.removesuffix("\n"))


@versions.command("diff")
@remote
def diff_versions(session: Session, flow: FlowName, version: Number, other: Other = None) -> None:
    """Show how a version differs from another one.

    Without a second version it is compared with the flow's current definition.

    Exit code 0: it does not differ. 1: it does.

    \b
    Examples:
      flowserver versions diff order 2 3
      flowserver versions diff order 3
    """
    before = session.client.get_version(session.flow(flow), version).definition
    if other is None:
        after, after_name = session.client.get_flow(flow).definition, f"{flow} now"
    else:
        after, after_name = session.client.get_version(flow, other).definition, f"version {other}"
    end_with_diff(session, {"flow": flow}, diff_of(before, after, f"version {version}", after_name))


@versions.command("publish")
@remote
def publish_version(session: Session, flow: FlowName, description: Description = "") -> None:
    """Publish the current definition of a flow.

    If the newest version has this definition and description already, nothing is published.

    \b
    Example:
      flowserver versions publish order --description 'asks for the postcode'
    """
    found = session.client.publish_version(session.flow(flow), description)
    said = f"published version {found.version} of {flow}"
    if not found.is_new:
        said = f"unchanged: version {found.version} of {flow} has this definition and description"
    show_one(session, found, str(found.version), said)


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
    show_change(session, "deleted", str(version), f"deleted version {version} of {flow}")
