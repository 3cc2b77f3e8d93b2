"""The commands `flowserver flows …`."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.diffs import diff_of, end_with_diff
from flowserver.cli.remote.output import one_line, show_change, show_list, show_one
from flowserver.cli.remote.session import Session, read_text
from flowserver.cli.remote.times import shown_instant
from flowserver.cli.server_options import takes_choices
from flowserver.cli.tables import aligned

flows = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

FlowName = Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")]
FlowNames = Annotated[list[str], typer.Argument(metavar="FLOW", help="Names of flows.")]
File = Annotated[
    str | None, typer.Argument(metavar="FILE", help="The definition; FLOW.yaml if not given, - is standard input.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many at most.")]
OnRetriesExhausted = Annotated[
    Literal["fail", "wait-for-redrive"] | None,
    typer.Option("--on-retries-exhausted", help="What executions do if a step fails for good and no `catch` applies."),
]
RetentionDays = Annotated[
    int | None, typer.Option("--retention-days", min=0, help="How long ended executions are kept; 0 for ever.")
]
Description = Annotated[str | None, typer.Option("--description", help="What the flow is for.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@flows.callback()
@takes_choices
def _flows() -> None:
    """List, show, describe, compare, set and delete flows."""


@flows.command("list")
@remote
def list_flows(session: Session, limit: Limit = 1_000) -> None:
    """List the flows by name.

    \b
    Examples:
      flowserver flows list
      flowserver flows list -o name
    """
    now = datetime.now(UTC)
    found = session.client.flows()
    columns = {
        "FLOW": lambda flow: flow.name,
        "CHANGED": lambda flow: shown_instant(flow.last_modified_time, now),
        "DESCRIPTION": lambda flow: one_line(flow.description, 60),
    }
    show_list(session, found, columns, lambda flow: flow.name, "There are no flows.", limit)


@flows.command("get")
@remote
def get_flow(session: Session, flow: FlowName) -> None:
    """Show a flow's definition, as it was sent.

    `-o json` shows the whole flow, with its description and times.

    \b
    Examples:
      flowserver flows get order > order.yaml
      flowserver flows get order -o json
    """
    found = session.client.get_flow(session.flow(flow))
    if session.output == "yaml":
        typer.echo(found.definition, nl=not found.definition.endswith("\n"))
    else:
        show_one(session, found, found.name, found.definition.removesuffix("\n"))


@flows.command("describe")
@remote
def describe_flow(session: Session, flow: FlowName) -> None:
    """Show a flow's settings and times.

    `flows set` changes the settings, `flows get` shows the definition.

    \b
    Example:
      flowserver flows describe order
    """
    found, now = session.client.get_flow(session.flow(flow)), datetime.now(UTC)
    days = found.retention_days
    rows = [
        ["flow:", found.name],
        ["description:", one_line(found.description, 80)],
        ["created:", shown_instant(found.created_time, now)],
        ["changed:", shown_instant(found.last_modified_time, now)],
        ["retention days:", "" if days is None else str(days)],
        ["on retries exhausted:", "fail" if found.on_retries_exhausted == "fail" else "wait-for-redrive"],
    ]
    show_one(session, found, found.name, aligned([row for row in rows if row[1]]))


@flows.command("diff")
@remote
def diff_flow(session: Session, flow: FlowName, file: File = None) -> None:
    """Show how a file differs from a flow.

    Exit code 0: it does not differ. 1: it does.

    \b
    Examples:
      flowserver flows diff order order.yaml
      generate-flow | flowserver flows diff order -
    """
    found = session.client.get_flow(session.flow(flow))
    name = file or f"{flow}.yaml"
    lines = diff_of(found.definition, read_text(name), f"{flow} at {session.url}", name)
    end_with_diff(session, {"flow": flow}, lines)


@flows.command("set")
@remote
def set_flow(
    session: Session,
    flow: FlowName,
    on_retries_exhausted: OnRetriesExhausted = None,
    retention_days: RetentionDays = None,
    description: Description = None,
) -> None:
    """Change settings of a flow, which are not in its definition.

    \b
    Examples:
      flowserver flows set order --on-retries-exhausted wait-for-redrive
      flowserver flows set order --retention-days 365
    """
    if on_retries_exhausted is None and retention_days is None and description is None:
        raise CommandFailed(
            "say what to change: --on-retries-exhausted, --retention-days, --description", ExitCode.USAGE
        )
    changed = session.client.update_flow(
        session.flow(flow),
        description=description,
        retention_days=retention_days,
        on_retries_exhausted="waitForRedrive" if on_retries_exhausted == "wait-for-redrive" else on_retries_exhausted,
    )
    show_one(session, changed, changed.name, f"changed {changed.name}")


@flows.command("delete")
@remote
def delete_flows(session: Session, flows: FlowNames, yes: Yes = False) -> None:
    """Delete flows. Their running executions are stopped, and their executions can no longer be read.

    \b
    Examples:
      flowserver flows delete order
      flowserver flows delete order parcel --yes
    """
    confirm(f"Delete {', '.join(flows)}, with all executions?", yes)
    for name in flows:
        session.client.delete_flow(session.flow(name))
    show_change(session, "deleted", flows)


def confirm(question: str, yes: bool, about: Iterable[str] = ()) -> None:
    """Ask, after the lines that say what it is about, unless `--yes` was given.

    Raises CommandFailed where there is no terminal to ask at.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed(f"{question} There is no terminal to ask at: add --yes", ExitCode.USAGE)
    for line in about:
        typer.echo(printable(line), err=True)
    typer.confirm(question, abort=True, err=True)
