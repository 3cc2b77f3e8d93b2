"""What `apply` looks at before it writes anything: what is wrong or doubtful about what the files describe."""

from collections.abc import Container, Iterable, Sequence
from typing import Final

import typer

from flowserver.cli.closed_pipes import unread_is_dropped
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.resources import FlowFile, Resource
from flowserver.cli.remote.session import Session
from flowserver.cli.resource_fields import mistakes_in
from flowserver.client.errors import Invalid
from flowserver.client.results import Json

PREVENTED: Final = "nothing is applied"

Targets = Container[tuple[str, str]]
"""Flows and functions, by kind and name, as findings name what is missing."""


def check(session: Session, checked: Sequence[Resource], names: Targets, strict: bool, aloud: bool) -> int:
    """Show all findings; returns how many of `checked` are invalid or, if strict, have a warning.

    That a flow or function is missing which is among the `names` is no finding. Warnings that refuse nothing
    are shown if `aloud`; writing shows them too.
    """
    refused = 0
    for each in checked:
        findings = lacking(_found(session, each), names)
        is_refused = any(found["severity"] == "error" for found in findings) or (strict and bool(findings))
        if is_refused or aloud:
            show_findings(each, findings)
        if is_refused:
            refused += 1
    return refused


def require_none(refused: int, wanted: Sequence[Resource]) -> None:
    """Raises CommandFailed if some of the resources that the files describe are refused."""
    if refused:
        what = "definition" if all(isinstance(each, FlowFile) for each in wanted) else "resource"
        of = f" of {len(wanted)} {what}s" if len(wanted) > 1 else f" {what}"
        raise CommandFailed(f"{refused}{of} {'is' if refused == 1 else 'are'} refused; {PREVENTED}")


def lacking(findings: Iterable[Json], names: Targets) -> list[Json]:
    """The findings but those that only say that something is missing which has one of these kinds and names.

    Warnings of a deployment are about the state after it.
    """
    return [found for found in findings if _target_of(found) not in names]


def targets_in(wanted: Iterable[Resource], hosted: Iterable[str]) -> set[tuple[str, str]]:
    """The flows and functions among them, and the functions that are hosted from the same files.

    The program that hosts functions registers them, when it starts.
    """
    flows = {(each.kind, each.name) for each in wanted if each.kind == "flow"}
    functions = [*hosted, *(each.name for each in wanted if each.kind == "function")]
    return flows | {("function", _plain(name)) for name in functions}


def _plain(name: str) -> str:
    """The name of a function as findings have it, without a qualifier."""
    service, _, function = name.rpartition("/")
    service = service.partition(".")[0].strip("-")
    return f"{service}/{function}" if service else function


def show_findings(resource: Resource, findings: Iterable[Json]) -> None:
    """Print findings, each with its place."""
    for finding in findings:
        hint = f" ({finding['hint']})" if finding.get("hint") else ""
        said = f"{resource.place_of(finding)}: {finding['severity']}[{finding['id']}]: {finding['message']}{hint}"
        with unread_is_dropped():
            typer.echo(printable(said), err=True)


def _found(session: Session, resource: Resource) -> Sequence[Json]:
    try:
        return resource.check(session.client)
    except Invalid as error:
        return [
            {"severity": "error", "id": error.code, "message": message, "field": field}
            for message, field in mistakes_in(error.detail, resource.kind)
        ]


def _target_of(finding: Json) -> tuple[str, str] | None:
    target = finding.get("target")
    return None if target is None else (target["kind"], target["name"])
