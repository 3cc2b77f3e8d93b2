"""The command `flowserver start`."""

import re
import sys
from typing import Annotated

import typer

from flowserver.base.json_values import InvalidJson, load_json_object
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import json_text
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.error_lines import error_text
from flowserver.cli.remote.following import follow
from flowserver.cli.remote.output import show_one
from flowserver.cli.remote.session import Session, read_text
from flowserver.cli.remote.times import seconds_of
from flowserver.client.errors import WaitedTooLong
from flowserver.client.results import Execution, Json

FlowName = Annotated[str, typer.Argument(metavar="FLOW", help="The flow's name.")]
Input = Annotated[
    str | None,
    typer.Option("--input", "-i", metavar="JSON|@FILE|-", help="The input, a JSON object; - is standard input."),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="The execution's name; default: a new one. While it runs, the same start returns it again.",
    ),
]
Qualifier = Annotated[
    str | None,
    typer.Option("--qualifier", metavar="VERSION|ALIAS", help="Run this version, or a version that the alias chooses."),
]
Wait = Annotated[bool, typer.Option("--wait", "-w", help="Show the steps live, then print the output.")]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="DURATION", help="How long to wait at most, such as 10m; then exit code 1."),
]


@remote
def start(
    session: Session,
    flow: FlowName,
    input: Input = None,
    name: Name = None,
    qualifier: Qualifier = None,
    wait: Wait = False,
    timeout: Timeout = None,
) -> None:
    """Start an execution of a flow.

    With --wait the command shows the steps while they run, and then prints the output. If steps wait for a redrive, it
    says so and continues to wait. Exit code 0: the execution succeeded. 1: it failed, was stopped or timed out. Ctrl-c
    detaches; the execution continues.

    \b
    Examples:
      flowserver start order
      flowserver start order --input '{"orderId": 4711}' --wait
      flowserver start order --qualifier prod
      flowserver start order --input @order.json --name order-4711 --wait --timeout 10m
    """
    if timeout is not None and not wait:
        raise CommandFailed("--timeout is for --wait", ExitCode.USAGE)
    _require_no_qualifier_in(flow)
    seconds = None if timeout is None else seconds_of(timeout, "--timeout")
    session.asked_name, session.asked_alias = name, qualifier
    execution = session.client.start(session.flow(flow), input_of(input), name=name, qualifier=qualifier)
    if wait:
        if not sys.stderr.isatty():  # a drawing has the name in its heading
            session.note(f"{execution.path} runs. Come back: flowserver watch {execution.path}")
        try:
            ended = follow(session, execution, seconds)
        except WaitedTooLong:
            _show_as_it_is(session, execution)
            raise
        show_ended(session, ended)
        return
    show_one(session, execution, execution.path, execution.path)
    session.note(f"Watch it: flowserver watch {execution.path}")


def _require_no_qualifier_in(flow: str) -> None:
    """Raises CommandFailed for `order:prod` and `order@prod`, as other programs write a version or an alias."""
    if found := re.fullmatch(r"([\w-]+)[:@]([\w-]+)", flow):
        meant = f"flowserver start {found[1]} --qualifier {found[2]}"
        raise CommandFailed(f"{flow!r} is not the name of a flow. Write: {meant}", ExitCode.USAGE)


def _show_as_it_is(session: Session, execution: Execution) -> None:
    """Print the execution for a program that has not seen its end."""
    if session.output in ("json", "yaml"):
        found = session.client.get_execution(execution.flow_name, execution.name)
        show_document(session.output, found.document)
    elif session.output == "name":
        typer.echo(execution.path)


def input_of(text: str | None, option: str = "--input") -> Json | None:
    """The JSON object that is written, or that the file holds; raises CommandFailed if it is none."""
    if text is None:
        return None
    content = read_text(text.removeprefix("@")) if text == "-" or text.startswith("@") else text
    try:
        return load_json_object(content)
    except InvalidJson as error:
        raise CommandFailed(f"{option} must be a JSON object: {error}", ExitCode.USAGE) from None


def show_ended(session: Session, execution: Execution) -> None:
    """Print the output, or the error on stderr; raises typer.Exit unless the execution has succeeded."""
    if session.output == "name":
        typer.echo(execution.path)
    elif session.output in ("json", "yaml"):
        show_document(session.output, execution.document)
    elif execution.succeeded:
        typer.echo(json_text(execution.output, indent=2))
    if not execution.succeeded:
        parts = [f"{execution.path} ended as {execution.status}", error_text(execution.error, execution.cause)]
        raise CommandFailed(": ".join(each for each in parts if each))
