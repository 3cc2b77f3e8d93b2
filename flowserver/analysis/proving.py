"""All that can be said of a definition before it runs: the parser's findings, and those of the rules."""

from dataclasses import dataclass

from flowserver.analysis.callbacks_and_ids import check_callbacks_and_ids
from flowserver.analysis.compensation import check_compensation
from flowserver.analysis.data_flow import WORK_MAX, data_of
from flowserver.analysis.errors_and_retries import check_errors
from flowserver.analysis.missing_data import check_data
from flowserver.analysis.outlook import Fit, Uncaught, fits, uncaught_errors
from flowserver.analysis.places import Places
from flowserver.analysis.rules import Finding
from flowserver.analysis.sub_flow_cycles import Starts, starting_itself
from flowserver.analysis.subject import Owner, Subject
from flowserver.analysis.suppressions import suppressions_in, without_suppressed
from flowserver.analysis.time_and_loops import check_time
from flowserver.analysis.worst_case import Cost, check_sizes, worst_case
from flowserver.base.limits import Limits
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import DIAGNOSTICS_MAX, DefinitionRejected, Severity, shown
from flowserver.language.graph import Flow
from flowserver.language.parser import ParsedDefinition, parse
from flowserver.language.reachability import nested_lists


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found, in order of place; `worst_case` is None for a definition that is not valid.

    `uncaught` are tasks whose errors end the flow, `fits` foreach steps whose results do not fit for all collections.
    """

    findings: tuple[Finding, ...]
    worst_case: Cost | None
    uncaught: tuple[Uncaught, ...] = ()
    fits: tuple[Fit, ...] = ()


def prove(
    text: str, limits: Limits, *, lenient: bool = False, name: str | None = None, beside: Starts | None = None
) -> Proof:
    """Look at a definition in YAML or JSON; raises nothing, for any text.

    A definition with errors has the parser's findings alone. `name` is the flow's, if it is not in the text; `beside`
    says what the flows start that are looked at together with it.
    """
    try:
        parsed = parse(text, limits, allow_ref_tags=True, lenient=lenient)
    except DefinitionRejected as error:
        return Proof(tuple(Finding.of(found) for found in error.diagnostics), None)
    name = name or parsed.flow.name
    cycle = None if name is None else starting_itself(name, parsed.flow, beside)
    if cycle is not None:
        parsed = ParsedDefinition(parsed.flow, (*parsed.warnings, cycle))
    return prove_parsed(text, parsed, limits)


def prove_parsed(
    text: str, parsed: ParsedDefinition, limits: Limits, work: Work | None = None, keys_max: int = WORK_MAX
) -> Proof:
    """Look at a valid definition, whose warnings are among the findings unless a comment suppresses them.

    `work` is paused meanwhile. If more than `keys_max` keys would have to be carried from step to step, nothing is said
    of the data.
    """
    flow, work = parsed.flow, work or Work()
    data = data_of(flow, work, keys_max)
    subject = Subject(flow, limits, Places(text, limits, work), data, _owners(flow), work=work)
    for found in parsed.warnings:
        subject.findings[Finding.of(found)] = None
    _check_entered(subject)
    check_data(subject)
    check_errors(subject)
    check_compensation(subject)
    check_time(subject)
    check_callbacks_and_ids(subject)
    check_sizes(subject)
    cost = worst_case(subject)
    comments = suppressions_in(text, (step.span for _, _, step in subject.steps()))
    told = without_suppressed(subject.findings, comments)
    return Proof(tuple(_in_order(told)), cost, tuple(uncaught_errors(subject)), tuple(fits(subject)))


def _in_order(findings: list[Finding]) -> list[Finding]:
    """The findings in order of place, DIAGNOSTICS_MAX of them; errors before warnings where not all have room."""
    by_severity = sorted(findings, key=lambda each: each.severity is Severity.WARNING)
    told = by_severity[:DIAGNOSTICS_MAX]
    told.sort(key=lambda each: (each.span.line, each.span.column, each.severity is Severity.WARNING, each.id))
    if left_out := len(findings) - len(told):
        message = f"there are {left_out} more findings"
        told.append(Finding("more-warnings", Severity.WARNING, message, told[-1].span))
    return told


def _owners(flow: Flow) -> dict[int, Owner]:
    return {
        nested.list_id: Owner(steps.list_id, index)
        for steps in flow.lists
        for index, step in enumerate(steps.steps)
        for nested in nested_lists(step)
    }


def _check_entered(subject: Subject) -> None:
    """Report the steps after a step that always fails; those that no way leads to are the parser's to report."""
    known = {found.span for found in subject.findings if found.id == "unreachable-step"}
    for steps in subject.flow.lists:
        facts = subject.facts_of(steps)
        if facts is None:
            continue
        for index, step in enumerate(steps.steps):
            span = subject.places.name_of(step.span)
            if index not in facts.steps and span not in known:
                message = f"{shown(step.name)} never runs: every way to it leads through a step that never succeeds"
                subject.findings[Finding("unreachable-step", Severity.WARNING, message, span)] = None
