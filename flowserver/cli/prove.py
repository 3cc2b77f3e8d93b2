"""The command `flowserver prove`: what can go wrong in a flow, without running it."""

import json
from collections.abc import Iterator
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Annotated, Final

import typer

from flowserver.analysis.outlook import Fit, Uncaught
from flowserver.analysis.proving import Proof
from flowserver.analysis.proving import prove as look_at
from flowserver.analysis.rules import RULES
from flowserver.analysis.worst_case import Cost
from flowserver.base.durations import rounded_duration
from flowserver.base.limits import Limits
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.finding_output import (
    Files,
    Strict,
    count,
    counted,
    documents,
    is_valid,
    names_in,
    read_definition,
    show_findings,
)
from flowserver.cli.flow_cycles import flows_together
from flowserver.cli.options import LenientFlag, LimitsFlag, read_language_settings
from flowserver.cli.sarif import sarif_of
from flowserver.cli.server_options import formatted
from flowserver.editing.rule_pages import explained
from flowserver.language.diagnostics import DIAGNOSTICS, Severity

UNCAUGHT_SHOWN_MAX: Final = 10
"""Tasks that a line about uncaught errors names."""

SarifFile = Annotated[
    Path | None,
    typer.Option("--sarif", metavar="FILE", help="Also write the findings to this file, as SARIF 2.1.0."),
]
Explain = Annotated[
    str | None,
    typer.Option(
        "--explain",
        metavar="RULE",
        help="Print why findings of this rule are true, a flow that has one, and the same flow without it.",
    ),
]


@formatted
def prove(
    output: str,
    files: Files = [],  # noqa: B006 - typer reads it
    sarif: SarifFile = None,
    explain: Explain = None,
    limits: LimitsFlag = None,
    lenient: LenientFlag = None,
    strict: Strict = False,
) -> None:
    """Find what can go wrong in flows, without a server.

    Follows every way through a flow: data that is missing on one of them, errors that nothing catches, loops without
    a bound, time-outs that never fire. Each finding has its rule, its place, often a hint and a way through the flow
    that shows it. An error is true in every execution that gets there; a warning is probably a mistake. A definition
    that is not valid has the findings of `flowserver validate` alone.

    The last lines say what an execution takes at most, and which errors of tasks end it. --explain says why findings of
    a rule are true.

    A comment `# flowserver: ignore RULE reason`, behind a line or above a step, suppresses a finding.

    Exit code 0: no errors. 1: errors, or warnings with --strict. 3: a file cannot be read.

    \b
    Examples:
      flowserver prove flow.yaml
      flowserver prove --strict flows/
      flowserver prove flows/ --sarif findings.sarif
      flowserver prove --explain missing-on-path
    """
    if explain is not None:
        _explain(explain)
        return
    if not files:
        raise CommandFailed("name a definition or a folder: flowserver prove flow.yaml", ExitCode.USAGE)
    settings = read_language_settings({"limits": limits, "lenient": lenient})
    in_force = Limits.of(settings.limits)
    texts = {name: read_definition(name) for name in dict.fromkeys(names_in(files))}
    given = {name: text for name, text in texts.items() if text is not None}
    names, starts = flows_together(given, in_force, lenient=settings.lenient)
    proofs = {
        name: look_at(text, in_force, lenient=settings.lenient, name=names.get(name), beside=starts)
        for name, text in given.items()
    }
    if sarif is not None:
        _write(sarif, sarif_of((name, proof.findings) for name, proof in proofs.items()))
    if output == "name":
        for name, proof in proofs.items():
            if count(proof.findings, Severity.ERROR):
                typer.echo(name)
    elif output != "table":
        show_document(output, [_as_json(name, proof) for name, proof in proofs.items()])
    else:
        show_findings((name, given[name], proof.findings, _lines(proof)) for name, proof in proofs.items())
    if len(given) < len(texts):
        raise typer.Exit(ExitCode.NOT_FOUND)
    if any(count(proof.findings, Severity.ERROR) or (strict and proof.findings) for proof in proofs.values()):
        raise typer.Exit(ExitCode.FAILED)


def _explain(rule: str) -> None:
    known = (*RULES, *DIAGNOSTICS)
    if rule not in known:
        near = get_close_matches(rule, known, n=1)
        hint = f"; did you mean `{near[0]}`?" if near else f"; there are {', '.join(RULES)}"
        raise CommandFailed(f"`{rule}` is no rule{hint}", ExitCode.NOT_FOUND)
    typer.echo(explained(rule), nl=False)


def _write(file: Path, document: object) -> None:
    try:
        file.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise CommandFailed(f"{typer.format_filename(file)}: {error.strerror}", ExitCode.NOT_FOUND) from None


def _as_json(name: str, proof: Proof) -> dict[str, object]:
    return {
        "file": name,
        "valid": is_valid(proof.findings),
        "diagnostics": documents(proof.findings),
        "worstCase": None if proof.worst_case is None else _bounds(proof.worst_case),
        "uncaught": [{"step": each.step, "line": each.line, "caught": list(each.caught)} for each in proof.uncaught],
        "fits": [
            {"step": each.step, "line": each.line, "itemBytes": each.item_bytes, "itemsMax": each.items_max}
            for each in proof.fits
        ],
    }


def _bounds(cost: Cost) -> dict[str, float | None]:
    """The most that an execution takes; null if it has no bound."""
    values = {"seconds": cost.seconds, "calls": cost.calls, "events": cost.events, "lists": cost.lists}
    return {name: None if value == inf else round(value) for name, value in values.items()}


def _lines(proof: Proof) -> Iterator[str]:
    yield _summary(proof)
    if proof.uncaught:
        yield _uncaught(proof.uncaught)
    yield from map(_fit, proof.fits)


def _summary(proof: Proof) -> str:
    errors, warnings = count(proof.findings, Severity.ERROR), count(proof.findings, Severity.WARNING)
    parts = [counted(errors, "error") if errors else "no errors"]
    if warnings:
        parts.append(counted(warnings, "warning"))
    found = ", ".join(parts)
    if proof.worst_case is None:
        return found
    cost = proof.worst_case
    time = "any time" if cost.seconds == inf else rounded_duration(cost.seconds * 1000)
    amounts = (_amount(cost.calls, "call"), _amount(cost.events, "event"), time)
    return f"{found}; at most {', '.join(amounts)}"


def _amount(value: float, noun: str) -> str:
    return f"any number of {noun}s" if value == inf else counted(round(value), noun)


def _uncaught(tasks: tuple[Uncaught, ...]) -> str:
    named = [
        f"{each.step} (but {', '.join(each.caught)})" if each.caught else each.step
        for each in tasks[:UNCAUGHT_SHOWN_MAX]
    ]
    more = len(tasks) - len(named)
    return f"errors of these tasks end it: {', '.join(named)}" + (f" and {more} more" if more else "")


def _fit(fit: Fit) -> str:
    return f"{fit.step}: at most {fit.items_max:,} iterations fit, of {fit.item_bytes} bytes or more each"
