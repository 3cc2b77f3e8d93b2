"""The commands `flowserver executions …`."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, Final, Literal

import typer

from flowserver.base.lazy_import import load
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.event_lines import event_line, is_of, show_events, shown_event, with_paths
from flowserver.cli.remote.execution_description import described, shown_error
from flowserver.cli.remote.execution_states import STATUSES, OfStatus, state_of
from flowserver.cli.remote.flows import Limit, Yes, confirm
from flowserver.cli.remote.output import show_list, show_one
from flowserver.cli.remote.redrive_plans import shown_plan
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.start import input_of
from flowserver.cli.remote.times import instant_of, shown_instant, shown_span
from flowserver.cli.server_options import takes_choices
from flowserver.client.errors import Refused
from flowserver.client.results import Event, Execution
from flowserver.machine.events import EventType

executions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_EVENTS_SUGGESTION: Final = "flowserver.cli.remote.suggestions:events_suggestion"
_STEP_SUGGESTION: Final = "flowserver.cli.remote.suggestions:step_suggestion"
"""Loaded when a step is not there."""

STEPS_MAX: Final = 200
"""Steps that `describe` shows; `-o json` and `history` have all."""

ExecutionPath = Annotated[str, typer.Argument(metavar="EXECUTION", help="The execution, written FLOW/NAME.")]
ExecutionPaths = Annotated[list[str], typer.Argument(metavar="EXECUTION", help="Executions, each written FLOW/NAME.")]
AnyExecutionPaths = Annotated[
    list[str] | None, typer.Argument(metavar="EXECUTION", help="Executions, each written FLOW/NAME.")
]
OfFlow = Annotated[str | None, typer.Option("--flow", metavar="FLOW", help="Only executions of this flow.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="AGE",
        help="Only those started since: an age (1d), `today`, or an instant, local without an offset.",
    ),
]
Until = Annotated[str | None, typer.Option("--until", metavar="AGE", help="Only those started before; as for --since.")]
Prefix = Annotated[str | None, typer.Option("--prefix", help="Only executions whose names begin so.")]
OfQualifier = Annotated[
    str | None,
    typer.Option(
        "--qualifier",
        metavar="VERSION|ALIAS",
        help="Only executions of this version, or of this alias; LATEST: of the flow's own definition.",
    ),
]
Parked = Annotated[bool, typer.Option("--parked", help="Only executions that the server has set aside.")]
WaitingForRedrive = Annotated[bool, typer.Option("--waiting-redrive", help="Only those that wait for a redrive.")]
ErrorName = Annotated[str | None, typer.Option("--error", help="Name of the error that ends it.")]
Cause = Annotated[str | None, typer.Option("--cause", help="What happened, in words.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what happens, until the execution has ended.")]
OfStep = Annotated[
    str | None,
    typer.Option(
        "--step", metavar="STEP", help="Only events of this step: a name, or a path such as pack[17].label or pack[17]."
    ),
]
OfTypes = Annotated[
    list[EventType] | None,
    typer.Option("--type", metavar="TYPE", case_sensitive=False, help="Only events of this type; may be repeated."),
]
EndedStatus = Annotated[
    Literal["failed", "stopped", "timedout"] | None,
    typer.Option("--status", case_sensitive=False, help="Those that ended so; failed if absent."),
]
WithError = Annotated[str | None, typer.Option("--error", help="Only those that ended with this error.")]
FromStep = Annotated[str | None, typer.Option("--from", metavar="STEP", help="Go back to this step of the flow.")]
Definition = Annotated[
    str,
    typer.Option(
        "--definition",
        metavar="same|current|VERSION",
        help="The one it ended with, the flow's present one, or a published version.",
    ),
]
NewInput = Annotated[
    str | None,
    typer.Option("--input", "-i", metavar="JSON|@FILE|-", help="New input of the step that failed, if only one did."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would run again, and change nothing.")]
Reverse = Annotated[bool, typer.Option("--reverse", help="The newest events first.")]
EventLimit = Annotated[int | None, typer.Option("--limit", min=1, help="How many events at most; all if absent.")]


@executions.callback()
@takes_choices
def _executions() -> None:
    """List, describe, stop and redrive executions."""


@executions.command("list")
@remote
def list_executions(
    session: Session,
    flow: OfFlow = None,
    status: OfStatus = None,
    since: Since = None,
    until: Until = None,
    prefix: Prefix = None,
    qualifier: OfQualifier = None,
    parked: Parked = False,
    waiting: WaitingForRedrive = False,
    limit: Limit = 50,
) -> None:
    """List executions, the newest first.

    Of one flow or of all, with the errors that ended them.

    \b
    Examples:
      flowserver executions list --status failed --since 1d
      flowserver executions list --flow order --prefix customer-17 -o json
    """
    now = datetime.now(UTC)
    wanted = {**_filter(status, since, until, prefix, parked, waiting), "qualifier": qualifier}
    found = list(islice(session.executions(flow, **wanted), limit + 1))
    columns = {
        "EXECUTION": lambda one: one.path,
        "STATUS": lambda one: "Parked" if one.parked_error else state_of(one),
        "VERSION": lambda one: "" if one.version is None else str(one.version),
        "STARTED": lambda one: shown_instant(one.started_time, now),
        "TOOK": lambda one: shown_span(one.started_time, one.stopped_time, now),
        "FAILED STEP": lambda one: one.failed_step or "",
        "ERROR": shown_error,
    }
    show_list(session, found[:limit], columns, lambda one: one.path, "No execution matches.")
    if len(found) > limit:
        session.note(f"There are more than {limit}: use --limit, or narrow the search.")


@executions.command("describe")
@remote
def describe_executions(session: Session, executions: ExecutionPaths) -> None:
    """Show executions: status, steps, input, output, error.

    \b
    Examples:
      flowserver executions describe order/8f0c2a
      flowserver executions describe order/8f0c2a -o json
    """
    found = [session.client.get_execution(*session.execution(each), current_steps=True) for each in executions]
    if session.output in ("json", "yaml"):
        documents = [each.document for each in found]
        show_document(session.output, documents[0] if len(documents) == 1 else documents)
        return
    now = datetime.now(UTC)
    for number, each in enumerate(found):
        steps = list(islice(session.client.steps(each.flow_name, each.name), STEPS_MAX))
        show_one(session, each, each.path, ("\n" if number else "") + described(each, steps, now))


@executions.command("history")
@remote
def show_history(
    session: Session,
    execution: ExecutionPath,
    follow: Follow = False,
    step: OfStep = None,
    type: OfTypes = None,
    reverse: Reverse = False,
    limit: EventLimit = None,
) -> None:
    """Show the events of an execution.

    All of them, unless --limit says otherwise; then a note says that there are more.

    Steps are shown with the numbers of their branches and iterations, from 0: `pack[17].label`. `pack[].label` is that
    step in all iterations. With `--follow -o json` every line of the output is one event.

    \b
    Examples:
      flowserver executions history order/8f0c2a
      flowserver executions history order/8f0c2a --step charge --reverse
      flowserver executions history order/8f0c2a --step 'pack[17]' --type TaskFailed --type TaskTimedOut
      flowserver executions history order/8f0c2a --follow -o json
    """
    flow, name = session.execution(execution)
    if follow:
        if reverse:
            raise CommandFailed("--follow and --reverse exclude each other", ExitCode.USAGE)
        followed = with_paths(session.client.events(flow, name))
        for event in islice((each for each in followed if is_of(each, step, type or ())), limit):
            _show_followed(session, event)
        return
    events = session.client.history(
        flow, name, step=step, types=[str(each) for each in type or ()], newest_first=reverse, paths=True
    )
    count = show_events(session, islice(events, limit))
    if step is not None and not count:
        session.note(f"No event of a step {step}{load(_EVENTS_SUGGESTION)(session, flow, name, step)}")
    if next(events, None) is not None:
        session.note(f"There are more than {limit}: use --limit, or narrow the search.")


@executions.command("stop")
@remote
def stop_executions(
    session: Session,
    executions: AnyExecutionPaths = None,
    flow: OfFlow = None,
    since: Since = None,
    until: Until = None,
    prefix: Prefix = None,
    error: ErrorName = None,
    cause: Cause = None,
    yes: Yes = False,
) -> None:
    """Stop executions for good.

    Either those that are named, or all running ones that match.

    \b
    Examples:
      flowserver executions stop order/8f0c2a --cause 'the customer changed her mind'
      flowserver executions stop --flow order --since 1h
      flowserver executions stop --prefix load-test- --yes
    """
    chosen = _chosen(session, executions, flow, _filter("running", since, until, prefix, False))
    if not executions and chosen:
        confirm(f"Stop {len(chosen)} running executions?", yes)
    _change_all(session, chosen, lambda *each: session.client.stop(*each, error=error, cause=cause), "stopped")


@executions.command("redrive")
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
    dry_run: DryRun = False,
    yes: Yes = False,
    waiting: WaitingForRedrive = False,
) -> None:
    """Redrive executions: they go on where they failed.

    What succeeded is kept. Either those that are named, or all that match and have failed, or as --status says, or
    that wait for it (--waiting-redrive).

    \b
    Examples:
      flowserver executions redrive order/8f0c2a --dry-run
      flowserver executions redrive order/8f0c2a --from charge --definition current
      flowserver executions redrive --flow order --error FC.Unknown --since 1d
    """
    wanted: dict[str, Any] = {"from_step": from_step, "definition": definition, "input": input_of(input)}
    chosen = _chosen(
        session,
        executions,
        flow,
        _filter(None if waiting else status or "failed", since, until, prefix, False, waiting),
        error,
    )
    if from_step is not None and definition == "same":
        for each in chosen[:1]:
            _check_step(session, *each, from_step)
    if dry_run:
        _show_plans(session, {each: session.client.plan_redrive(*each, **wanted).document for each in chosen})
        return
    if not executions and chosen:
        confirm(f"Redrive {len(chosen)} executions?", yes)
    _change_all(session, chosen, lambda *each: session.client.redrive(*each, **wanted), "redriven")


@executions.command("restart")
@remote
def restart_executions(session: Session, executions: ExecutionPaths) -> None:
    """Restart parked executions.

    Each continues at the same step. If the reason why it was parked is still there, it is parked again.

    \b
    Example:
      flowserver executions restart order/order-4711
    """

    def restart(flow: str, name: str) -> Execution:
        found = session.client.restart(flow, name)
        if found.parked_error is not None:
            raise CommandFailed(f"{found.path} is parked again: {found.parked_error}")
        return found

    _change_all(session, [session.execution(each) for each in executions], restart, "restarted")


def _chosen(
    session: Session, named: Sequence[str] | None, flow: str | None, wanted: dict[str, Any], error: str | None = None
) -> list[tuple[str, str]]:
    """Flow and name of the executions that are named, or else of those that match; raises CommandFailed for both."""
    conditions = [each for name, each in wanted.items() if name != "status"]
    if bool(named) == any(each is not None for each in (flow, error, *conditions)):
        raise CommandFailed("either name executions, or say which: --flow, --since, --until, --prefix", ExitCode.USAGE)
    if named:
        return [session.execution(each) for each in named]
    found = [each for each in session.executions(flow, **wanted) if error in (None, each.error)]
    if not found:
        session.note("No execution matches.")
    return [(each.flow_name, each.name) for each in found]


def _check_step(session: Session, flow: str, name: str, step: str) -> None:
    """Raises CommandFailed for a step that is probably misspelt."""
    if hint := load(_STEP_SUGGESTION)(session, flow, name, step):
        raise CommandFailed(f"{flow}/{name} has no step {step}{hint}", ExitCode.NOT_FOUND)


def _show_plans(session: Session, plans: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Print what redrives would do; raises typer.Exit if one of them cannot be made."""
    if session.output in ("json", "yaml"):
        show_document(session.output, [{"execution": "/".join(each), **plan} for each, plan in plans.items()])
    else:
        for each, plan in plans.items():
            typer.echo(shown_plan("/".join(each), plan))
    if not all(plan["redrivable"] for plan in plans.values()):
        raise typer.Exit(ExitCode.FAILED)


def _change_all(
    session: Session, chosen: Sequence[tuple[str, str]], change: Callable[[str, str], Execution], verb: str
) -> None:
    """Change one after the other, and print each as soon as it is done.

    What the server refuses for one of several does not keep it from the others; raises the last refusal in the end.
    """
    changed: list[Execution] = []
    refusal: Refused | CommandFailed | None = None
    for flow, name in chosen:
        try:
            changed.append(change(flow, name))
        except (Refused, CommandFailed) as error:
            if refusal is not None:
                typer.echo(printable(f"flowserver: {refusal}"), err=True)
            refusal = error
        else:
            if session.output not in ("json", "yaml"):
                typer.echo(f"{flow}/{name}" if session.output == "name" else f"{verb} {flow}/{name}")
    if session.output in ("json", "yaml") and (changed or refusal is None):
        show_document(session.output, [each.document for each in changed])
    if refusal is not None:
        raise refusal


def _show_followed(session: Session, event: Event) -> None:
    if session.output == "json":
        typer.echo(event_line(event))
    else:
        typer.echo(shown_event(event, datetime.now(UTC)))


def _filter(
    status: str | None, since: str | None, until: str | None, prefix: str | None, parked: bool, waiting: bool = False
) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "status": None if status is None else STATUSES[status],
        "started_from": None if since is None else instant_of(since, "--since", now),
        "started_to": None if until is None else instant_of(until, "--until", now),
        "name_prefix": prefix,
        "parked": parked or None,
        "waiting_for_redrive": waiting or None,
    }
