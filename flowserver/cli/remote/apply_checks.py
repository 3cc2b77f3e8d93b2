"""What `apply` looks at before it writes anything: what is wrong or doubtful about what the files describe."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Final

import typer

from flowserver.base.lazy_import import load
from flowserver.cli.closed_pipes import unread_is_dropped
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.resources import FlowFile, Resource
from flowserver.cli.remote.session import Session
from flowserver.cli.resource_fields import mistakes_in
from flowserver.client.errors import ClientError, Invalid
from flowserver.client.results import Json

if TYPE_CHECKING:
    from flowserver.client import Client

STARTS_ITSELF: Final = "starts-itself"
_CYCLES: Final = "flowserver.cli.flow_cycles:cycles_in"

PREVENTED: Final = "nothing is applied"

NAMES_MAX: Final = 1_000
"""Names of the server that are read for a suggestion."""

NEARNESS_MIN: Final = 0.8
"""Of names that are suggested, as difflib measures it: most often a target is missing because it comes later."""


class Targets:
    """Flows and functions that the files have, by kind and name, as findings name what is missing.

    `cycles` has the findings in flows that start themselves through others of the files.
    """

    def __init__(self, client: "Client", names: Iterable[tuple[str, str]], cycles: Mapping[str, Json]) -> None:
        self.cycles = cycles
        self._client = client
        self._names = frozenset(names)
        self._at_server: dict[str, list[str]] = {}

    def __contains__(self, target: object) -> bool:
        return target in self._names

    def hint(self, finding: Json, own_name: str) -> str | None:
        """`did you mean `NAME`?` for a target that is missing: the nearest name of the files and the server, if any.

        It is not `own_name`, whose definition the finding is about.
        """
        target = _target_of(finding)
        if target is None or target[0] not in ("flow", "function"):
            return None
        kind, wanted = target
        known = {name for each, name in self._names if each == kind} | set(self._server_names(kind))
        near = get_close_matches(wanted, sorted(known - {wanted, own_name}), n=1, cutoff=NEARNESS_MIN)
        return f"did you mean `{near[0]}`?" if near else None

    def _server_names(self, kind: str) -> list[str]:
        """Read once; none if they cannot be read."""
        if kind not in self._at_server:
            client = self._client
            found = (
                (each.name for each in client.flows()) if kind == "flow" else (each.path for each in client.functions())
            )
            try:
                self._at_server[kind] = list(islice(found, NAMES_MAX))
            except ClientError:
                self._at_server[kind] = []
        return self._at_server[kind]


def check(session: Session, checked: Sequence[Resource], names: Targets, strict: bool, aloud: bool) -> int:
    """Show all findings; returns how many of `checked` are invalid or, if strict, have a warning.

    That a flow or function is missing which is among the `names` is no finding. Warnings that refuse nothing
    are shown if `aloud`; writing shows them too.
    """
    refused = 0
    for each in checked:
        findings = [*lacking(_found(session, each), names), *cycles_of(each, names)]
        is_refused = any(found["severity"] == "error" for found in findings) or (strict and bool(findings))
        if is_refused or aloud:
            show_findings(each, findings, names)
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


def cycles_of(resource: Resource, names: Targets) -> list[Json]:
    """The finding in a flow that starts itself through others of the files, or directly."""
    found = names.cycles.get(resource.name) if isinstance(resource, FlowFile) else None
    return [] if found is None else [found]


def targets_in(client: "Client", wanted: Iterable[Resource], hosted: Iterable[str]) -> Targets:
    """The flows and functions among them, and the functions that are hosted from the same files.

    The program that hosts functions registers them, when it starts.
    """
    flows = {each.name: each.text for each in wanted if isinstance(each, FlowFile)}
    functions = [*hosted, *(each.name for each in wanted if each.kind == "function")]
    names = {("flow", name) for name in flows} | {("function", _plain(name)) for name in functions}
    return Targets(client, names, load(_CYCLES)(flows))


def _plain(name: str) -> str:
    """The name of a function as findings have it, without a qualifier."""
    service, _, function = name.rpartition("/")
    service = service.partition(".")[0].strip("-")
    return f"{service}/{function}" if service else function


def show_findings(resource: Resource, findings: Iterable[Json], names: Targets) -> None:
    """Print findings, each with its place, and what was probably meant."""
    for finding in findings:
        meant = finding.get("hint") or names.hint(finding, resource.name)
        hint = f" ({meant})" if meant else ""
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
