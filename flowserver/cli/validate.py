"""The command `flowserver validate`: what a server would say to a definition, without a server."""

from typing import Annotated

import typer

from flowserver.analysis.proving import prove
from flowserver.analysis.rules import Finding
from flowserver.analysis.sub_flow_cycles import Starts
from flowserver.base.limits import Limits
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.finding_output import (
    Files,
    Found,
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
from flowserver.cli.server_options import formatted
from flowserver.language.diagnostics import DefinitionRejected, Severity
from flowserver.language.parser import parse

Rules = Annotated[
    bool, typer.Option("--rules/--no-rules", help="Whether to look for what `flowserver prove` finds, too.")
]


@formatted
def validate(
    output: str,
    files: Files,
    limits: LimitsFlag = None,
    lenient: LenientFlag = None,
    strict: Strict = False,
    rules: Rules = True,
) -> None:
    """Check definitions, without a server.

    Shows every mistake with its place, a stable id and, where there is one, a hint; and in valid definitions what
    `flowserver prove` finds, unless --no-rules is given. A server takes definitions with findings of rules.
    `!Ref service/function`, which deployment tools expand, is accepted here. In folders it passes over `flows.yaml`,
    `functions.yaml` and `schedules.yaml`: `flowserver apply --dry-run` checks these with a server.

    Exit code 0: no errors. 1: errors, or warnings with --strict. 3: a file cannot be read.

    \b
    Examples:
      flowserver validate flow.yaml
      flowserver validate flows/
      flowserver validate --strict -o json flows/
      generate-flow | flowserver validate -
    """
    settings = read_language_settings({"limits": limits, "lenient": lenient})
    in_force = Limits.of(settings.limits)
    texts = {name: read_definition(name) for name in dict.fromkeys(names_in(files))}
    given = {name: text for name, text in texts.items() if text is not None}
    names, starts = flows_together(given, in_force, lenient=settings.lenient)
    checked = {
        name: check(text, in_force, lenient=settings.lenient, rules=rules, name=names.get(name), beside=starts)
        for name, text in given.items()
    }
    if output == "name":
        for name, found in checked.items():
            if count(found, Severity.ERROR):
                typer.echo(name)
    elif output != "table":
        shown = (
            {"file": name, "valid": is_valid(found), "diagnostics": documents(found)} for name, found in checked.items()
        )
        show_document(output, list(shown))
    else:
        show_findings((name, given[name], found, [_summary(found)]) for name, found in checked.items())
    if len(checked) < len(texts):
        raise typer.Exit(ExitCode.NOT_FOUND)
    if any(count(found, Severity.ERROR) or (strict and found) for found in checked.values()):
        raise typer.Exit(ExitCode.FAILED)


def check(
    text: str,
    limits: Limits,
    *,
    lenient: bool = False,
    rules: bool = True,
    name: str | None = None,
    beside: Starts | None = None,
) -> Found:
    """What can be said about a definition, by the parser and by the rules; the last two as `prove` takes them."""
    if rules:
        return prove(text, limits, lenient=lenient, name=name, beside=beside).findings
    try:
        warnings = parse(text, limits, allow_ref_tags=True, lenient=lenient).warnings
    except DefinitionRejected as error:
        warnings = error.diagnostics
    return tuple(map(Finding.of, warnings))


def _summary(findings: Found) -> str:
    errors, warnings = count(findings, Severity.ERROR), count(findings, Severity.WARNING)
    parts = [counted(errors, "error") if errors else "valid"]
    found = ", ".join(parts + ([counted(warnings, "warning")] if warnings else []))
    return f"{found}; a server takes it all the same" if errors and is_valid(findings) else found
