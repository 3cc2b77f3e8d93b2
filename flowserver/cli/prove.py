"""The command `flowserver prove`: what can go wrong in a flow, without running it."""

import json
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from flowserver.analysis.proving import Proof
from flowserver.analysis.proving import prove as look_at
from flowserver.analysis.rules import Finding, PathStep
from flowserver.analysis.worst_case import Cost
from flowserver.api.rest.models.definition_checks import Diagnostic
from flowserver.base.limits import Limits
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import LenientFlag, LimitsFlag, read_settings
from flowserver.cli.sarif import sarif_of
from flowserver.cli.server_options import formatted
from flowserver.cli.validate import Files, Strict, coloured, counted, names_in, read_definition
from flowserver.language.diagnostics import Severity, render

SarifFile = Annotated[
    Path | None,
    typer.Option("--sarif", metavar="FILE", help="Also write the findings to this file, as SARIF 2.1.0."),
]


@formatted
def prove(
    output: str,
    files: Files,
    sarif: SarifFile = None,
    limits: LimitsFlag = None,
    lenient: LenientFlag = None,
    strict: Strict = False,
) -> None:
    """Find what can go wrong in flows, without a server.

    Follows every way through a flow: data that is missing on one of them, errors that nothing catches, loops without
    a bound, time-outs that never fire. Each finding has its rule, its place, often a hint and a way through the flow
    that shows it. An error is true in every execution that gets there; a warning is probably a mistake. A definition
    that is not valid has the findings of `flowserver validate` alone.

    A comment `# flowserver: ignore RULE reason`, behind a line or above a step, suppresses a finding.

    Exit code 0: no errors. 1: errors, or warnings with --strict. 3: a file cannot be read.

    \b
    Examples:
      flowserver prove flow.yaml
      flowserver prove --strict flows/
      flowserver prove flows/ --sarif findings.sarif
    """
    settings = read_settings({"limits": limits, "lenient": lenient})
    in_force = Limits.of(settings.limits)
    texts = {name: read_definition(name) for name in dict.fromkeys(names_in(files))}
    given = {name: text for name, text in texts.items() if text is not None}
    proofs = {name: look_at(text, in_force, lenient=settings.lenient) for name, text in given.items()}
    if sarif is not None:
        _write(sarif, sarif_of((name, proof.findings) for name, proof in proofs.items()))
    if output == "name":
        for name, proof in proofs.items():
            if _count(proof, Severity.ERROR):
                typer.echo(name)
    elif output != "table":
        show_document(output, [_as_json(name, proof) for name, proof in proofs.items()])
    else:
        _show((name, given[name], proof) for name, proof in proofs.items())
    if len(given) < len(texts):
        raise typer.Exit(ExitCode.NOT_FOUND)
    if any(_count(proof, Severity.ERROR) or (strict and proof.findings) for proof in proofs.values()):
        raise typer.Exit(ExitCode.FAILED)


def _write(file: Path, document: object) -> None:
    try:
        file.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise CommandFailed(f"{typer.format_filename(file)}: {error.strerror}", ExitCode.NOT_FOUND) from None


def _count(proof: Proof, severity: Severity) -> int:
    return sum(each.severity is severity for each in proof.findings)


def _as_json(name: str, proof: Proof) -> dict[str, object]:
    findings = [
        Diagnostic.of(each).model_dump() | {"path": [_place(step) for step in each.path]} for each in proof.findings
    ]
    worst = None if proof.worst_case is None else _bounds(proof.worst_case)
    return {"file": name, "valid": not _count(proof, Severity.ERROR), "diagnostics": findings, "worstCase": worst}


def _place(step: PathStep) -> dict[str, object]:
    return {"step": step.name, "line": step.line, "column": step.column, "note": step.note}


def _bounds(cost: Cost) -> dict[str, float | None]:
    """The most that an execution takes; null if it has no bound."""
    values = {"seconds": cost.seconds, "calls": cost.calls, "events": cost.events, "lists": cost.lists}
    return {name: None if value == inf else round(value) for name, value in values.items()}


def _show(proofs: Iterable[tuple[str, str, Proof]]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for path, text, proof in proofs:
        name = typer.format_filename(path)
        for found in proof.findings:
            console.print(coloured(render(found, text, name) + _way(found), found))
        console.print(Text(f"{name}: {_summary(proof)}"))


def _way(found: Finding) -> str:
    lines = [f"    line {each.line}: {each.name} {each.note}" for each in found.path]
    return "\n".join(["\n  way:", *lines]) if lines else ""


def _summary(proof: Proof) -> str:
    errors, warnings = _count(proof, Severity.ERROR), _count(proof, Severity.WARNING)
    parts = [counted(errors, "error") if errors else "no errors"]
    if warnings:
        parts.append(counted(warnings, "warning"))
    found = ", ".join(parts)
    if proof.worst_case is None:
        return found
    cost = proof.worst_case
    amounts = (_amount(cost.calls, "call"), _amount(cost.events, "event"), _amount(cost.seconds, "second"))
    return f"{found}; at most {', '.join(amounts)}"


def _amount(value: float, noun: str) -> str:
    if value == inf:
        return f"any number of {noun}s"
    return f"{round(value):,} {noun}" + ("" if round(value) == 1 else "s")
