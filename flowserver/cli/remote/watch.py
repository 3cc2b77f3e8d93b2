"""The command `flowserver watch`."""

from flowserver.cli.remote.command import remote
from flowserver.cli.remote.executions import ExecutionPath
from flowserver.cli.remote.following import follow
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.start import Timeout, show_ended
from flowserver.cli.remote.times import seconds_of


@remote
def watch(session: Session, execution: ExecutionPath, timeout: Timeout = None) -> None:
    """Attach to an execution and show its steps.

    They are shown live; then its output is printed. It says so if steps wait for a redrive, and waits on.

    Exit code 0: it succeeded. 1: it failed, was stopped or timed out. Ctrl-c detaches; the execution continues.

    \b
    Example:
      flowserver watch order/8f0c2a
    """
    seconds = None if timeout is None else seconds_of(timeout, "--timeout")
    found = session.client.get_execution(*session.execution(execution))
    show_ended(session, follow(session, found, seconds))
