"""The commands `flowserver executions …`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Final

import typer

from flowserver.base.lazy_import import load
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.event_lines import event_line, is_of, show_events, shown_event, with_paths
from flowserver.cli.remote.execution_changes import change_all
from flowserver.cli.remote.execution_description import described, shown_error
from flowserver.cli.remote.execution_filters import (
    AnyExecutionPaths,
    EndedSince,
    EndedUntil,
    OfFlow,
    OfQualifier,
    Parked,
    Prefix,
    Since,
    Until,
    WaitingForRedrive,
    chosen_executions,
    filter_of,
)
from flowserver.cli.remote.execution_states import OfStatus, state_of
from flowserver.cli.remote.flows import Limit, Yes, confirm
from flowserver.cli.remote.output import Columns, more_than, show_list, show_one
from flowserver.cli.remote.reconnecting import IS_BACK, Reconnecting
from flowserver.cli.remote.recording import record_execution
from flowserver.cli.remote.redrives import redrive_executions
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import shown_instant, shown_span
from flowserver.cli.server_options import takes_choices
from flowserver.client.outages import OUTAGE_SECONDS
from flowserver.client.results import Event, Execution
from flowserver.machine.events import EventType

executions = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

_EVENTS_SUGGESTION: Final = "flowserver.cli.remote.suggestions:events_suggestion"
"""Loaded when a step is not there."""

STEPS_MAX: Final = 200
"""Steps that `describe` shows; `-o json` and `history` have all."""

ExecutionPath = Annotated[str, typer.Argument(metavar="EXECUTION", help="The execution, written FLOW/NAME.")]
ExecutionPaths = Annotated[list[str], typer.Argument(metavar="EXECUTION", help="Executions, each written FLOW/NAME.")]
ErrorName = Annotated[str | None, typer.Option("--error", help="Name of the error that ends it.")]
Cause = Annotated[str | None, typer.Option("--cause", help="What happened, in words.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Also show new events, until the execution has ended.")]
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
Reverse = Annotated[bool, typer.Option("--reverse", help="The newest events first.")]
EventLimit = Annotated[int | None, typer.Option("--limit", min=1, help="How many events at most; default: all.")]


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
    ended_since: EndedSince = None,
    ended_until: EndedUntil = None,
    prefix: Prefix = None,
    qualifier: OfQualifier = None,
    parked: Parked = False,
    waiting: WaitingForRedrive = False,
    limit: Limit = 50,
) -> None:
    """List executions, the newest first.

    The list is of one flow or of all, with the errors that ended executions. --since looks at the start, --ended-since
    at the end: it also finds an execution that started yesterday and failed today.

    \b
    Examples:
      flowserver executions list --status failed --ended-since today
      flowserver executions list --status failed --since 1d
      flowserver executions list --flow order --prefix customer-17 -o json
    """
    now = datetime.now(UTC)
    wanted = filter_of(
        status,
        since,
        until,
        prefix,
        parked=parked,
        waiting=waiting,
        ended_since=ended_since,
        ended_until=ended_until,
        qualifier=qualifier,
    )
    columns: Columns[Execution] = {
        "EXECUTION": lambda one: one.path,
        "STATUS": state_of,
        "VERSION": lambda one: "" if one.version is None else str(one.version),
        "STARTED": lambda one: shown_instant(one.started_time, now),
        **({"ENDED": lambda one: shown_instant(one.stopped_time, now)} if ended_since or ended_until else {}),
        "TOOK": lambda one: shown_span(one.started_time, one.stopped_time, now),
        "FAILED STEP": lambda one: one.failed_step or "",
        "ERROR": shown_error,
    }
    show_list(
        session, session.executions(flow, **wanted), columns, lambda one: one.path, "No execution matches.", limit
    )


@executions.command("describe")
@remote
def describe_executions(session: Session, executions: ExecutionPaths) -> None:
    """Show executions: status, steps, input, output, error.

    \b
    Examples:
      flowserver executions describe order/8f0c2a
      flowserver executions describe order/8f0c2a -o json
    """
    found = [session.client.get_execution(*each, current_steps=True) for each in session.executions_of(executions)]
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

    It shows all events, unless --limit is given; then a note says if there are more.

    Steps are shown with the numbers of their branches and iterations, from 0: `pack[17].label`. `pack[].label` is that
    step in all iterations. With `--follow -o json` every line of the output is one event. --follow waits for a
    server that is away, as `watch` does, and shows each event once.

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
        followed = (each for each in _followed(session, flow, name) if is_of(each, step, type or ()))
        for event in islice(followed, limit):
            _show_followed(session, event)
        return
    events = session.client.history(
        flow, name, step=step, types=[str(each) for each in type or ()], newest_first=reverse, paths=True
    )
    count = show_events(session, islice(events, limit))
    if step is not None and not count:
        session.note(f"No event of a step {step}{load(_EVENTS_SUGGESTION)(session, flow, name, step)}")
    if limit is not None and next(events, None) is not None:
        session.note(more_than(limit))


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
    """Stop executions: they end now, as stopped.

    Name executions, or choose running ones by options. `executions redrive` continues a stopped execution.

    \b
    Examples:
      flowserver executions stop order/8f0c2a --cause 'the customer changed her mind'
      flowserver executions stop --flow order --since 1h
      flowserver executions stop --prefix load-test- --yes
    """
    chosen = chosen_executions(session, executions, flow, filter_of("running", since, until, prefix))
    if not executions and chosen:
        confirm(f"Stop {len(chosen)} running executions?", yes)

    def stop(flow: str, name: str) -> Execution:
        stopped = session.client.stop(flow, name, error=error, cause=cause)
        names = stopped.document.get("runningSubFlows")
        if names:
            typer.echo(printable(f"sub-flows of {flow}/{name} that run on: {', '.join(names)}"), err=True)
        return stopped

    change_all(session, chosen, stop, "stopped")


executions.command("redrive")(redrive_executions)
executions.command("record")(record_execution)


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

    change_all(session, session.executions_of(executions), restart, "restarted")


def _followed(session: Session, flow: str, name: str) -> Iterator[Event]:
    """The events of an execution until it has ended, each with its path. Waits for a server that is away."""
    execution = session.client.get_execution(flow, name)
    said = ""

    def say(notice: str) -> None:
        nonlocal said
        if notice != said:
            session.note(notice or IS_BACK)
        said = notice

    def on_parked(_: str) -> None:
        """`watch` says that; no event does."""

    way_back = f"flowserver executions history {execution.path} --follow"
    reading = Reconnecting(session.client, execution, say, on_parked, OUTAGE_SECONDS, way_back)
    return with_paths(reading.events())


def _show_followed(session: Session, event: Event) -> None:
    if session.output == "json":
        typer.echo(event_line(event))
    else:
        typer.echo(shown_event(event, datetime.now(UTC)))
