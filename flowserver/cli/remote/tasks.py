"""The commands `flowserver tasks …`: reports on tasks that wait for an answer from outside."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit
from flowserver.cli.remote.output import show_list
from flowserver.cli.remote.session import Session, read_text
from flowserver.cli.remote.start import input_of
from flowserver.cli.remote.times import seconds_of, shown_instant
from flowserver.cli.server_options import takes_choices
from flowserver.client.results import Nothing

tasks = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Token = Annotated[str, typer.Argument(metavar="TOKEN|@FILE|-", help="The task's token; - is standard input.")]
OfFlow = Annotated[str | None, typer.Option("--flow", metavar="FLOW", help="Only tasks of this flow.")]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="DURATION", help="Only those that have waited at least this long: 1h."),
]
Output = Annotated[
    str | None, typer.Option("--output", metavar="JSON|@FILE|-", help="The task's result, a JSON object.")
]
ErrorName = Annotated[str, typer.Option("--error", help="Name of the error; `retry` and `catch` of the step match it.")]
Cause = Annotated[str | None, typer.Option("--cause", help="What happened, in words.")]


@tasks.callback()
@takes_choices
def _tasks() -> None:
    """List tasks that wait for a report, and report on them."""


@tasks.command("list")
@remote
def list_tasks(session: Session, flow: OfFlow = None, older_than: OlderThan = None, limit: Limit = 50) -> None:
    """List the tasks that wait, the oldest executions first.

    `-o name` prints their tokens.

    \b
    Examples:
      flowserver tasks list --flow order --older-than 1h
      flowserver tasks list -o name
    """
    seconds = None if older_than is None else int(seconds_of(older_than, "--older-than"))
    asked = None if flow is None else session.flow(flow)
    found = session.client.tasks(asked, older_than_seconds=seconds)
    now = datetime.now(UTC)
    columns = {
        "EXECUTION": lambda one: f"{one.flow_name}/{one.execution_name}",
        "STEP": lambda one: one.step_name,
        "SINCE": lambda one: shown_instant(one.entered_time, now),
        "DUE": lambda one: shown_instant(one.due_time, now),
        "TOKEN": lambda one: one.task_token,
    }
    which = f"No task{'' if flow is None else f' of {flow}'}"
    none_found = f"{which} waits." if older_than is None else f"{which} has waited for {older_than}."
    show_list(session, found, columns, lambda one: one.task_token, none_found, limit)


@tasks.command("succeed")
@remote
def succeed_task(session: Session, task_token: Token, result: Output = None) -> None:
    """Report that a task has succeeded.

    \b
    Examples:
      flowserver tasks succeed "$TOKEN" --output '{"approved": true}'
      flowserver tasks succeed @token --output @result.json
    """
    _show(session, session.client.succeed_task(_token(task_token), input_of(result, "--output")), "succeeded")


@tasks.command("fail")
@remote
def fail_task(session: Session, task_token: Token, error: ErrorName, cause: Cause = None) -> None:
    """Report that a task has failed.

    \b
    Example:
      flowserver tasks fail "$TOKEN" --error Rejected --cause 'above the limit'
    """
    _show(session, session.client.fail_task(_token(task_token), error, cause), "failed")


def _token(text: str) -> str:
    """The token that is typed, or in the file; raises CommandFailed for an execution."""
    flow, slash, _ = text.partition("/")
    if slash and not text.startswith("@"):
        hint = f"flowserver tasks list --flow {flow} shows the tokens of what waits"
        raise CommandFailed(f"a task is named by its token, not as {text}: {hint}", ExitCode.USAGE)
    return read_text(text.removeprefix("@")).strip() if text == "-" or text.startswith("@") else text


def _show(session: Session, receipt: Nothing, verb: str) -> None:
    if session.output in ("json", "yaml"):
        show_document(session.output, receipt.document)
    else:
        typer.echo(f"{verb}: the execution continues")
