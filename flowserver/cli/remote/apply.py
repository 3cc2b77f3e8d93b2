"""The command `flowserver apply`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from flowserver.cli.definition_files import SCHEDULES_FILE, files_in
from flowserver.cli.documents import show_document
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.diffs import diff_of, show_diff
from flowserver.cli.remote.flows import Yes, confirm
from flowserver.cli.remote.output import show_names
from flowserver.cli.remote.resources import FlowFile, Resource, resources_in
from flowserver.cli.remote.session import Session

PREVENTED: Final = "nothing is applied"

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Files, each a definition named as its flow (order.yaml), or folders."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
Strict = Annotated[bool, typer.Option("--strict", help="Apply nothing if the server warns of anything.")]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune",
        help="Delete the flows that have no file here; if there is a `schedules.yaml`, the schedules that it lacks.",
    ),
]


@dataclass(frozen=True, slots=True)
class Planned:
    """What applying does to one resource."""

    kind: str
    name: str
    change: str
    diff: Sequence[str] = ()
    resource: Resource | None = None

    @property
    def document(self) -> dict[str, Any]:
        """For programs."""
        return {"kind": self.kind, "name": self.name, "change": self.change, "diff": "\n".join(self.diff)}


@remote
def apply(
    session: Session,
    paths: Paths,
    dry_run: DryRun = False,
    strict: Strict = False,
    prune: Prune = False,
    yes: Yes = False,
) -> None:
    """Apply files and folders of flows.

    Also `functions.yaml` and `schedules.yaml`. The name of a file without its suffix is the flow's. Every definition is
    checked before anything is applied. What has changed is shown as a diff.

    \b
    Examples:
      flowserver apply flows/
      flowserver apply order.yaml parcel.yaml --dry-run
      flowserver apply flows/ --strict --prune
    """
    wanted = resources_in(paths)
    _check(session, [each for each in wanted if isinstance(each, FlowFile)], strict)
    planned = [_plan(session, each) for each in wanted]
    if prune:
        gone = _left_out(session, paths, wanted)
        if gone and not dry_run:
            names = ", ".join(f"{each.kind}/{each.name}" for each in gone)
            confirm(f"Delete {names}? Flows are deleted with all executions.", yes)
        planned += gone
    for each in planned:
        if not dry_run:
            _carry_out(session, each)
        if session.output == "table":
            _show(session, each)
    if session.output == "name":
        show_names(f"{each.kind}/{each.name}" for each in planned)
    elif session.output != "table":
        show_document(session.output, [each.document for each in planned])
    if dry_run:
        session.note("That was a dry run: nothing has changed.")


def _check(session: Session, files: Sequence[FlowFile], strict: bool) -> None:
    """Raises CommandFailed, after all findings, if a definition is invalid or, if strict, has a warning."""
    refused = 0
    for each in files:
        found = session.client.validate(each.text).document
        for finding in found["diagnostics"]:
            hint = f" ({finding['hint']})" if finding.get("hint") else ""
            place = f"{each.file}:{finding['line']}:{finding['column']}"
            typer.echo(f"{place}: {finding['severity']}[{finding['id']}]: {finding['message']}{hint}", err=True)
        refused += not found["valid"] or (strict and bool(found["diagnostics"]))
    if refused:
        raise CommandFailed(f"{refused} of {len(files)} definitions are refused; {PREVENTED}")


def _plan(session: Session, resource: Resource) -> Planned:
    current = resource.current(session.client)
    if current == resource.text:
        return Planned(resource.kind, resource.name, "unchanged")
    if current is None:
        return Planned(resource.kind, resource.name, "created", resource=resource)
    diff = diff_of(current, resource.text, "server", "file")
    return Planned(resource.kind, resource.name, "changed", diff, resource)


def _left_out(session: Session, paths: Sequence[Path], wanted: Sequence[Resource]) -> list[Planned]:
    """The flows that have no file, and the schedules of other flows that `schedules.yaml` does not have."""
    kept = {kind: {each.name for each in wanted if each.kind == kind} for kind in ("flow", "schedule")}
    gone = [Planned("flow", flow.name, "deleted") for flow in session.client.flows() if flow.name not in kept["flow"]]
    if not any(file.name == SCHEDULES_FILE for file in files_in(paths)):
        return gone
    left_out = (each for each in session.client.schedules() if each.path not in kept["schedule"])
    return gone + [Planned("schedule", each.path, "deleted") for each in left_out if each.flow_name in kept["flow"]]


def _carry_out(session: Session, planned: Planned) -> None:
    if planned.change == "deleted" and planned.kind == "schedule":
        flow, _, name = planned.name.partition("/")
        session.client.delete_schedule(flow, name)
    elif planned.change == "deleted":
        session.client.delete_flow(planned.name)
    elif planned.resource is not None:
        planned.resource.apply(session.client)


def _show(session: Session, planned: Planned) -> None:
    typer.echo(f"{planned.kind}/{planned.name} {planned.change}")
    show_diff(session, planned.diff)
