"""Attaches to an execution until it ends: its steps on stderr, drawn on a terminal, else as lines."""

import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

import typer

from flowserver.base.lazy_import import load
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.remote.reconnecting import IS_BACK, Reconnecting
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.step_lines import MARKS, PLAIN_MARKS, step_line, waiting_lines
from flowserver.cli.remote.step_states import Progress
from flowserver.client.errors import WaitedTooLong
from flowserver.client.outages import OUTAGE_SECONDS
from flowserver.client.results import Execution

_DRAWN: Final = "flowserver.cli.remote.live_steps:drawn"
"""Loaded where there is a terminal to draw on."""

AGAIN_SECONDS: Final = 1.0

REDRIVEN: Final = "ExecutionRedriven"
"""The type of the event after which an execution goes on."""


def follow(session: Session, execution: Execution, timeout_seconds: float | None) -> Execution:
    """Show the steps until the execution has ended; returns it then.

    While steps wait for a redrive, or it is parked, it waits too: it says so once, with the command to go on. It does
    not say so of waits that are over. If the server is away it asks again, until `timeout_seconds` or OUTAGE_SECONDS
    have passed.
    Raises WaitedTooLong after `timeout_seconds`. Ctrl-c detaches: it says how to come back, and raises typer.Exit.
    """
    progress = Progress()
    draws = sys.stderr.isatty() and not session.quiet

    def say(notice: str) -> None:
        if notice != progress.notice and not draws:
            session.note(notice or IS_BACK)
        progress.notice = notice

    def say_parked(reason: str) -> None:
        was_parked, progress.parked = progress.parked, reason
        if bool(reason) is bool(was_parked) or session.quiet or draws:
            return
        if reason:
            _note_waiting(session, execution, progress)
        elif progress.status == "Running":
            session.note("It was restarted.")

    say_parked(execution.parked_error or "")
    outage_seconds = OUTAGE_SECONDS if timeout_seconds is None else timeout_seconds
    reading = Reconnecting(session.client, execution, say, say_parked, outage_seconds, _way_back(execution))
    with _detaching(execution), _limited(execution, timeout_seconds):
        if not session.quiet:
            _show_steps(session, reading, progress, draws)
        return reading.wait()


def _show_steps(session: Session, reading: Reconnecting, progress: Progress, draws: bool) -> None:
    marks = MARKS if (sys.stderr.encoding or "").lower().startswith("utf") else PLAIN_MARKS
    drawing: AbstractContextManager[Any] = nullcontext()
    if draws:
        drawing = load(_DRAWN)(reading.execution, progress, session.is_colourful)
    is_said, present = False, 0
    with drawing:
        for event in reading.events():
            for step in progress.add(event):
                if not draws:
                    session.note(step_line(step, datetime.now(UTC), marks))
            if draws:
                continue
            if event.type == REDRIVEN:
                session.note("It was redriven.")
            is_said = is_said and progress.waiting > 0
            if progress.waiting and not is_said and event.event_id > present:
                present = reading.last_event_id()
            if progress.waiting and not is_said and event.event_id >= present:
                _note_waiting(session, reading.execution, progress)
                is_said = True


def _note_waiting(session: Session, execution: Execution, progress: Progress) -> None:
    """Say that steps wait for a redrive now, or that it is parked."""
    lines = waiting_lines(execution.path, progress)
    session.note("\n".join([*lines, f"This command waits on. Come back: {_way_back(execution)}"]))


@contextmanager
def _detaching(execution: Execution) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nDetached; {execution.path} continues. Come back: {_way_back(execution)}", err=True)
        raise typer.Exit(ExitCode.DETACHED) from None


@contextmanager
def _limited(execution: Execution, seconds: float | None) -> Iterator[None]:
    """Raises WaitedTooLong inside when so many seconds have passed.

    An exception that a signal raises is lost if a finalizer runs just then, so the signal comes again until it got out.
    """

    def stop(*_: object) -> NoReturn:
        raise WaitedTooLong(f"{execution.path} still runs. Come back: {_way_back(execution)}")

    if seconds is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), AGAIN_SECONDS)  # 0 would mean never
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _way_back(execution: Execution) -> str:
    return f"flowserver watch {execution.path}"
