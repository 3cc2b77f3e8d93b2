"""Attaches to an execution until it ends: its steps on stderr, as they happen."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import typer

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.remote.histories import shown_event
from flowserver.cli.remote.session import Session
from flowserver.client.results import Execution


def follow(session: Session, execution: Execution, timeout_seconds: float | None) -> Execution:
    """Show the steps until the execution has ended; returns it then.

    Raises WaitedTooLong after `timeout_seconds`. Ctrl-c detaches: it says how to come back, and raises typer.Exit.
    """
    flow, name = execution.flow_name, execution.name
    with _detaching(execution):
        if not session.quiet and timeout_seconds is None:
            for event in session.client.events(flow, name):
                session.note(shown_event(event, datetime.now(UTC)))
        return session.client.wait(flow, name, timeout_seconds=timeout_seconds)


@contextmanager
def _detaching(execution: Execution) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nDetached; {execution.path} runs on. Come back: flowserver watch {execution.path}", err=True)
        raise typer.Exit(ExitCode.DETACHED) from None
