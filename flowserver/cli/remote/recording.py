"""The commands `flowserver test record` and `flowserver executions record`: a flow test made from an execution."""

from pathlib import Path
from typing import Annotated, Final

import typer

from flowserver.base.clock import parse_instant
from flowserver.base.lazy_import import load
from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.session import Session
from flowserver.client.errors import NotFound, NotPermitted
from flowserver.flowtests.recording import NotRecordable, RecordedEvent, record

_YAML: Final = "flowserver.cli.yaml_text:yaml_text"
"""Loaded when it is needed."""

FlowName = Annotated[str, typer.Argument(metavar="FLOW", help="The flow; or the execution, written FLOW/NAME.")]
ExecutionName = Annotated[str | None, typer.Argument(metavar="EXECUTION", help="The execution's name.")]
ExecutionPath = Annotated[str, typer.Argument(metavar="EXECUTION", help="The execution, written FLOW/NAME.")]
DefinitionFile = Annotated[
    Path | None,
    typer.Option("--definition", metavar="FILE", help="The definition, as the test names it; default: FLOW.yaml."),
]


@remote
def record_test(
    session: Session, flow: FlowName, execution: ExecutionName = None, definition: DefinitionFile = None
) -> None:
    """Print a flow test that repeats an execution.

    The test has the execution's input, what its calls and callbacks answered, and what has come out. Values of members
    whose names sound like secrets, such as `password` or `apiKey`, are hidden wherever they are, and so is what looks
    like a credential. Write it to a file beside the definition and run it with `flowserver test`.

    \b
    Examples:
      flowserver test record order 8f0c2a > flows/order.flowtest.yaml
      flowserver test record order/8f0c2a --definition flow.yaml
    """
    _record(session, flow if execution is None else f"{flow}/{execution}", definition)


@remote
def record_execution(session: Session, execution: ExecutionPath, definition: DefinitionFile = None) -> None:
    """Print a flow test, as `flowserver test record` does.

    \b
    Example:
      flowserver executions record order/8f0c2a > flows/order.flowtest.yaml
    """
    _record(session, execution, definition)


def _record(session: Session, execution: str, definition: Path | None) -> None:
    flow, name = session.execution(execution)
    events = (
        RecordedEvent(each.type, each.step_path or "", parse_instant(each.time), each.detail)
        for each in session.client.history(flow, name, paths=True)
    )
    try:
        recording = record(
            events,
            definition=str(definition or f"{flow}.yaml"),
            flow=flow,
            execution=name,
            definition_text=_definition_text(session, flow),
        )
    except NotRecordable as error:
        raise CommandFailed(f"no test can repeat {flow}/{name}: {error}", ExitCode.CONFLICT) from None
    if recording.hidden:
        session.note(f"hidden values, as they look like secrets: {recording.hidden}; the test may need others")
    if recording.kept:
        session.note(
            f"values that look like secrets, but are not hidden, as the definition holds them: {recording.kept}; "
            "look before you give the test to others"
        )
    if session.output == "json":
        show_document("json", recording.document)
    else:
        typer.echo(load(_YAML)(recording.document), nl=False)


def _definition_text(session: Session, flow: str) -> str:
    """The flow's present definition; empty if the key may not read it, or the flow is gone."""
    try:
        return session.client.get_flow(flow).definition
    except (NotFound, NotPermitted):
        return ""
