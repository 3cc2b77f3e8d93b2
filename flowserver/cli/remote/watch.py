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

    The command shows the steps while they run, and then prints the output. If steps wait for a redrive, it says so and
    continues to wait.

    Exit code 0: the execution succeeded. 1: it failed, was stopped or timed out. Ctrl-c detaches; the execution
    continues.

    \b
    Example:
      flowserver watch order/8f0c2a
    """
    seconds = None if timeout is None else seconds_of(timeout, "--timeout")
    found = session.client.get_execution(*session.execution(execution))
    show_ended(session, follow(session, found, seconds))
