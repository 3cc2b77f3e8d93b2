"""The command `flowserver executions redrive`."""

import uuid
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, Final, Literal

import typer

from flowserver.base.lazy_import import load
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.execution_changes import change_all
from flowserver.cli.remote.execution_filters import (
    FILTERS,
    AnyExecutionPaths,
    OfFlow,
    Prefix,
    Since,
    Until,
    WaitingForRedrive,
    check_choice,
    filter_of,
    found_executions,
)
from flowserver.cli.remote.flows import Yes, confirm
from flowserver.cli.remote.output import show_names
from flowserver.cli.remote.redrive_outcomes import END_REPORTED, RedriveOutcome, about_redrives, question_of
from flowserver.cli.remote.redrive_plans import shown_plan, steps_after
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.start import input_of
from flowserver.client.redrives import LOOKED_AT
from flowserver.client.results import ManyRedriven

STEPS_MAX: Final = 1_000
"""Steps of an execution that are read to say which ones come after `from`."""

_STEP_SUGGESTION: Final = "flowserver.cli.remote.suggestions:step_suggestion"
"""Loaded when a step is not there."""

EndedStatus = Annotated[
    Literal["failed", "stopped", "timedout"] | None,
    typer.Option("--status", case_sensitive=False, help="Only those that ended with this status; default: failed."),
]
WithError = Annotated[str | None, typer.Option("--error", help="Only those that ended with this error.")]
FromStep = Annotated[str | None, typer.Option("--from", metavar="STEP", help="Go back to this step of the flow.")]
Definition = Annotated[
    str,
    typer.Option(
        "--definition",
        metavar="same|current|VERSION",
        autocompletion=lambda: ["same", "current"],
        help="The definition to continue with: its own, the flow's current one, or a published version.",
    ),
]
NewInput = Annotated[
    str | None,
    typer.Option(
        "--input", "-i", metavar="JSON|@FILE|-", help="New input of the step that failed, if only one failed."
    ),
]
Children = Annotated[
    Literal["continue", "new"],
    typer.Option("--children", help="Continue the sub-flow executions that steps failed with, or start new ones."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would run again, and change nothing.")]


@remote
def redrive_executions(
    session: Session,
    executions: AnyExecutionPaths = None,
    flow: OfFlow = None,
    status: EndedStatus = None,
    since: Since = None,
    until: Until = None,
    prefix: Prefix = None,
    error: WithError = None,
    from_step: FromStep = None,
    definition: Definition = "same",
    input: NewInput = None,
    children: Children = "continue",
    dry_run: DryRun = False,
    yes: Yes = False,
    waiting: WaitingForRedrive = False,
) -> None:
    """Redrive executions: they continue where they failed.

    The results of steps that succeeded are kept. Name executions, or choose them by options: those that failed, or have
    the --status, or wait for a redrive (--waiting-redrive).

    \b
    Examples:
      flowserver executions redrive order/8f0c2a --dry-run
      flowserver executions redrive order/8f0c2a --from charge --definition current
      flowserver executions redrive --flow order --error FC.Unknown --since 1d
    """
    which = filter_of(None if waiting else status or "failed", since, until, prefix, waiting=waiting)
    filters = ("--error", "--waiting-redrive", *FILTERS)
    check_choice(session, executions, flow, which, error, filters)
    found = [] if executions else found_executions(session, flow, which, error)
    chosen = session.executions_of(executions) if executions else [(each.flow_name, each.name) for each in found]
    outcome = RedriveOutcome(session, chosen, is_single=bool(executions) and len(chosen) == 1)
    how: dict[str, Any] = {"from_step": from_step, "definition": definition, "children": children}
    new_input = input_of(input)
    if from_step is not None:
        for each in chosen[:1]:
            _check_step(session, *each, from_step, definition)
    if dry_run:
        plan = session.client.plan_redrive
        plans = {each: plan(*each, **how, input=new_input).document for each in chosen}
        _show_plans(session, plans, from_step, outcome)
        return
    if not executions and chosen:
        confirm(question_of(len(found)), yes, about_redrives(found, session.url, from_step, definition))
    if executions or new_input is not None:
        change_all(
            session,
            chosen,
            lambda *each: session.client.redrive(*each, **how, input=new_input),
            "redriven",
            tolerated=lambda error: outcome.is_left_out(error.code, error.redrive_instead),
            summary=outcome.summarize,
        )
    else:
        still: dict[str, Any] = {"waiting_for_redrive": True} if waiting else {"status": which["status"]}
        _redrive_matching(session, chosen, {**still, **how, "error": error}, outcome)


def _redrive_matching(
    session: Session, found: Sequence[tuple[str, str]], wanted: dict[str, Any], outcome: RedriveOutcome
) -> None:
    """Redrive what was found and still matches, some with each request, and print them after each.

    What has come to match since is left alone, because it was not confirmed. Raises CommandFailed in the end if the
    server has refused an execution that is not left out.
    """
    done: list[str] = []
    refused: list[str] = []
    is_document = session.output in ("json", "yaml")
    try:
        for answer, flow, goes_on in _answers(session, found, wanted):
            # Also what the first try of a request did whose answer was lost.
            paths = [f"{flow}/{name}" for name in (*answer.executions, *answer.repeated)]
            done += paths
            refused += [
                each.reason for each in answer.refused if not outcome.is_left_out(each.code, each.redrive_instead)
            ]
            if not is_document:
                show_names(paths if session.output == "name" else [f"redriven {path}" for path in paths])
            if goes_on:
                session.note(f"{len(done)} of {len(found)} redriven")
    finally:
        if is_document:
            show_document(session.output, [{"name": path, "change": "redriven"} for path in done])
    outcome.summarize(len(done), len(refused))
    if gone := len(found) - len(done) - len(refused) - outcome.left_out:
        session.note(f"{gone} of {len(found)} did not match any more.")
    for reason in refused[:-1]:
        typer.echo(printable(f"flowserver: {reason}"), err=True)
    if refused:
        raise CommandFailed(refused[-1], ExitCode.CONFLICT)


def _answers(
    session: Session, found: Sequence[tuple[str, str]], wanted: dict[str, Any]
) -> Iterator[tuple[ManyRedriven, str, bool]]:
    """The answers to one request after the other, all with one token: with the flow, and whether there is another."""
    wanted = {**wanted, "client_token": uuid.uuid4().hex}
    flows: dict[str, list[str]] = {}
    for flow, name in found:
        flows.setdefault(flow, []).append(name)
    parts = [
        (flow, names[start : start + LOOKED_AT])
        for flow, names in flows.items()
        for start in range(0, len(names), LOOKED_AT)
    ]
    for number, (flow, part) in enumerate(parts, 1):
        token = None
        while True:
            answer = session.client.redrive_many(session.flow(flow), **wanted, executions=part, next_token=token)
            token = answer.next_token
            yield answer, flow, token is not None or number < len(parts)
            if token is None:
                break


def _check_step(session: Session, flow: str, name: str, step: str, definition: str) -> None:
    """Raises CommandFailed for a step that is probably misspelt."""
    if hint := load(_STEP_SUGGESTION)(session, flow, name, step, definition):
        what = "the current definition" if definition == "current" else f"version {definition}"
        where = f"{flow}/{name}" if definition == "same" else f"{what} of {flow}"
        raise CommandFailed(f"{where} has no step {step}{hint}", ExitCode.NOT_FOUND)


def _show_plans(
    session: Session, plans: dict[tuple[str, str], dict[str, Any]], from_step: str | None, outcome: RedriveOutcome
) -> None:
    """Print what redrives would do; raises typer.Exit if one of them cannot be made, and is not left out."""
    left_out = {
        each
        for each, plan in plans.items()
        if plan.get("endReported") and outcome.is_left_out(END_REPORTED, plan["redriveInstead"])
    }
    possible = sum(plan["redrivable"] for plan in plans.values())
    refused = len(plans) - possible - len(left_out)
    if session.output in ("json", "yaml"):
        show_document(session.output, [{"execution": "/".join(each), **plan} for each, plan in plans.items()])
    else:
        for each, plan in plans.items():
            if each in left_out:
                continue
            after = () if from_step is None else steps_after(islice(session.client.steps(*each), STEPS_MAX), from_step)
            typer.echo(shown_plan("/".join(each), plan, after))
    outcome.summarize(possible, refused, "would be redriven")
    if refused:
        raise typer.Exit(ExitCode.CONFLICT)
