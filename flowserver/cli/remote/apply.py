"""The command `flowserver apply`."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from flowserver.cli.closed_pipes import unread_is_dropped
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.apply_checks import (
    STARTS_ITSELF,
    Targets,
    check,
    cycles_of,
    lacking,
    require_none,
    show_findings,
    targets_in,
)
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.diffs import diff_of, show_diff
from flowserver.cli.remote.flows import Yes, confirm
from flowserver.cli.remote.output import show_names
from flowserver.cli.remote.resource_reading import ResourceReader
from flowserver.cli.remote.resources import FlowFile, Resource
from flowserver.cli.remote.session import Session
from flowserver.cli.resource_files import SCHEDULES_FILE, files_in
from flowserver.client.errors import ClientError, Invalid

Paths = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH", help="Definitions, each in a file with the name of its flow (order.yaml), or folders."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check, show what would change, and change nothing.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Treat warnings as errors, also in files that have not changed.")
]
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
    def is_written(self) -> bool:
        """Whether it is created or changed."""
        return self.change in ("created", "changed")

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

    `flows.yaml` has settings of flows, `functions.yaml` and `schedules.yaml` have functions and schedules. Any other
    file is a definition; its name without `.yaml` or `.flow.yaml` is the flow's. Everything is checked before anything
    is applied. What has changed is shown as a diff.

    --dry-run finds what the real run would find, with the same exit code. If the output is not read to its end
    (`| head -1`), everything is applied nevertheless.

    \b
    Examples:
      flowserver apply flows/
      flowserver apply order.yaml parcel.yaml --dry-run
      flowserver apply flows/ --strict --prune
    """
    hosted: list[str] = []

    def note_hosted(file: Path, names: Sequence[str]) -> None:
        which = f"{names[0]} has a handler" if len(names) == 1 else f"{len(names)} functions have handlers"
        session.note(f"{file}: {which}; `flowserver functions serve {file}` hosts and registers what has one")
        hosted.extend(names)

    reader = ResourceReader(note_hosted)
    wanted = reader.read(paths)
    targets = targets_in(session.client, wanted, hosted)
    if reader.mistakes:
        with suppress(ClientError):  # the files alone are wrong: without a server this shows what is known
            check(session, wanted, targets, strict, aloud=False)
        raise CommandFailed("\nflowserver: ".join(reader.mistakes), ExitCode.USAGE)
    planned = [_plan(session, each) for each in wanted]
    _check(session, planned, targets, strict, dry_run)
    if prune:
        gone = _left_out(session, paths, wanted)
        if gone and not dry_run:
            names = ", ".join(f"{each.kind}/{each.name}" for each in gone)
            confirm(f"Delete {names}? Flows are deleted with all executions.", yes)
        planned += gone
    for each in planned if dry_run else _carry_out(session, planned, targets, strict):
        if session.output == "table":
            _show(session, each)
    with unread_is_dropped():
        if session.output == "name":
            show_names(f"{each.kind}/{each.name}" for each in planned)
        elif session.output != "table":
            show_document(session.output, [each.document for each in planned])
        if dry_run:
            session.note("That was a dry run: nothing has changed.")


def _check(session: Session, planned: Sequence[Planned], names: Targets, strict: bool, dry_run: bool) -> None:
    """Check what is to be written and, if strict, all but functions; raises CommandFailed.

    A single definition is checked by the request that writes it.
    """
    checked = [each for each in planned if each.is_written or (strict and each.kind != "function")]
    is_single = len(checked) == 1 and checked[0].is_written and checked[0].kind == "flow"
    if dry_run or not is_single:
        refused = check(session, _resources(checked), names, strict, dry_run)
        require_none(refused, _resources(planned))


def _resources(planned: Sequence[Planned]) -> list[Resource]:
    return [each.resource for each in planned if each.resource is not None]


def _plan(session: Session, resource: Resource) -> Planned:
    current = resource.current(session.client)
    if current == resource.text:
        return Planned(resource.kind, resource.name, "unchanged", resource=resource)
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


def _carry_out(session: Session, planned: Sequence[Planned], names: Targets, strict: bool) -> Iterator[Planned]:
    """Carry out what is planned, and yield each when it is done; settings, schedules and deletions come last.

    Raises CommandFailed, after the findings, for a definition that is refused.
    """
    last = [each for each in planned if each.kind in ("settings", "schedule") or each.change == "deleted"]
    yield from _write_callers_later(session, [each for each in planned if each not in last], names, strict)
    for each in last:
        _write(session, each, names, strict)
        yield each


def _write_callers_later(
    session: Session, planned: Sequence[Planned], names: Targets, strict: bool
) -> Iterator[Planned]:
    """Write functions and flows. A flow that the server refuses only because it names what is among the files is
    written after the others; if that does not help, as with flows that name one another, without being strict.
    """
    left = list(planned)
    while left:
        put_off: list[Planned] = []
        for each in left:
            try:
                _write(session, each, names, strict)
            except Invalid as error:
                if not strict or not error.diagnostics or lacking(error.diagnostics, names):
                    raise _refused(each, error, names) from None
                put_off.append(each)
            else:
                yield each
        strict = strict and len(put_off) < len(left)
        left = put_off


def _refused(planned: Planned, error: Invalid, names: Targets) -> ClientError | CommandFailed:
    if not error.diagnostics or not isinstance(planned.resource, FlowFile):
        return error
    show_findings(planned.resource, error.diagnostics, names)
    return CommandFailed(f"the definition of {planned.name} is refused")


def _write(session: Session, planned: Planned, names: Targets, strict: bool) -> None:
    """Write it, and show what the server warns of; that something is missing which the files have is no finding."""
    if planned.change == "deleted" and planned.kind == "schedule":
        flow, _, name = planned.name.partition("/")
        session.client.delete_schedule(flow, name)
    elif planned.change == "deleted":
        session.client.delete_flow(planned.name)
    elif planned.is_written and planned.resource is not None:
        findings = planned.resource.apply(session.client, strict=strict)
        others = [each for each in lacking(findings, names) if each["id"] != STARTS_ITSELF]
        show_findings(planned.resource, [*others, *cycles_of(planned.resource, names)], names)


def _show(session: Session, planned: Planned) -> None:
    with unread_is_dropped():
        typer.echo(f"{planned.kind}/{planned.name} {planned.change}")
        show_diff(session, planned.diff)
