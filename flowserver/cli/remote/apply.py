"""The command `flowserver apply`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from flowserver.cli.closed_pipes import unread_is_dropped
from flowserver.cli.document_output import show_document
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.diffs import diff_of, show_diff
from flowserver.cli.remote.flows import Yes, confirm
from flowserver.cli.remote.output import show_names
from flowserver.cli.remote.resources import FlowFile, Resource, resources_in
from flowserver.cli.remote.session import Session
from flowserver.cli.resource_files import SCHEDULES_FILE, files_in
from flowserver.client.errors import ClientError, Invalid
from flowserver.client.results import Json

PREVENTED: Final = "nothing is applied"

UNKNOWN_FLOW: Final = "unknown-flow"
TARGETS: Final = frozenset((UNKNOWN_FLOW, "unknown-function"))
"""Warnings that are judged when a definition is written: applying the other files may create what is missing."""

Paths = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Files, each a definition named as its flow (order.yaml), or folders."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
Strict = Annotated[bool, typer.Option("--strict", help="Let the server refuse definitions that it warns of.")]
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

    Also `functions.yaml` and `schedules.yaml`. The name of a file without its suffix is the flow's. If several
    definitions are to be written, all are checked before anything is applied. What has changed is shown as a diff.

    With --strict the server refuses a definition for its warnings, too. If the output is not read to its end
    (`| head -1`), everything is applied nevertheless.

    \b
    Examples:
      flowserver apply flows/
      flowserver apply order.yaml parcel.yaml --dry-run
      flowserver apply flows/ --strict --prune
    """
    wanted = resources_in(paths)
    planned = [_plan(session, each) for each in wanted]
    written = [each.resource for each in planned if isinstance(each.resource, FlowFile)]
    if dry_run or len(written) > 1:
        _check(session, written, strict)
    if prune:
        gone = _left_out(session, paths, wanted)
        if gone and not dry_run:
            names = ", ".join(f"{each.kind}/{each.name}" for each in gone)
            confirm(f"Delete {names}? Flows are deleted with all executions.", yes)
        planned += gone
    for each in planned if dry_run else _carry_out(session, planned, strict):
        if session.output == "table":
            _show(session, each)
    with unread_is_dropped():
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
        findings = [finding for finding in found["diagnostics"] if finding["id"] not in TARGETS]
        _show_findings(each, findings)
        refused += not found["valid"] or (strict and bool(findings))
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


def _show_findings(file: FlowFile, findings: Iterable[Json]) -> None:
    for finding in findings:
        hint = f" ({finding['hint']})" if finding.get("hint") else ""
        place = f"{file.file}:{finding['line']}:{finding['column']}"
        said = f"{place}: {finding['severity']}[{finding['id']}]: {finding['message']}{hint}"
        with unread_is_dropped():
            typer.echo(printable(said), err=True)


def _carry_out(session: Session, planned: Sequence[Planned], strict: bool) -> Iterator[Planned]:
    """Carry out what is planned, and yield each when it is done.

    A flow that the server refuses only because it names flows that do not exist is written after the others. Raises
    CommandFailed, after the findings, for a definition that is refused.
    """
    left = list(planned)
    while left:
        put_off: list[tuple[Planned, Invalid]] = []
        for each in left:
            try:
                _write(session, each, strict)
            except Invalid as error:
                if {found["id"] for found in error.diagnostics} != {UNKNOWN_FLOW}:
                    raise _refused(each, error) from None
                put_off.append((each, error))
            else:
                yield each
        if len(put_off) == len(left):
            raise _refused(*put_off[0])
        left = [each for each, _ in put_off]


def _refused(planned: Planned, error: Invalid) -> ClientError | CommandFailed:
    if not error.diagnostics or not isinstance(planned.resource, FlowFile):
        return error
    _show_findings(planned.resource, error.diagnostics)
    return CommandFailed(f"the definition of {planned.name} is refused")


def _write(session: Session, planned: Planned, strict: bool) -> None:
    if planned.change == "deleted" and planned.kind == "schedule":
        flow, _, name = planned.name.partition("/")
        session.client.delete_schedule(flow, name)
    elif planned.change == "deleted":
        session.client.delete_flow(planned.name)
    elif planned.resource is not None:
        warnings = planned.resource.apply(session.client, strict=strict)
        if isinstance(planned.resource, FlowFile):
            _show_findings(planned.resource, warnings)


def _show(session: Session, planned: Planned) -> None:
    with unread_is_dropped():
        typer.echo(f"{planned.kind}/{planned.name} {planned.change}")
        show_diff(session, planned.diff)
