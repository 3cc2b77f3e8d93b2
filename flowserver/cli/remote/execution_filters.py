"""Which executions a command is about: options that choose them, or their names."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.execution_states import STATUSES
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import instant_of
from flowserver.client.results import Execution

AnyExecutionPaths = Annotated[
    list[str] | None, typer.Argument(metavar="EXECUTION", help="Executions, each written FLOW/NAME.")
]
OfFlow = Annotated[str | None, typer.Option("--flow", metavar="FLOW", help="Only executions of this flow.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="AGE",
        help="Only those started since: an age (1d), `today`, or an instant; without an offset, in local time.",
    ),
]
Until = Annotated[str | None, typer.Option("--until", metavar="AGE", help="Only those started before; as for --since.")]
EndedSince = Annotated[
    str | None,
    typer.Option(
        "--ended-since",
        metavar="AGE",
        help="Only those that ended since, the latest first; as for --since. For --status failed, stopped, timedout.",
    ),
]
EndedUntil = Annotated[
    str | None,
    typer.Option("--ended-until", metavar="AGE", help="Only those that ended before; as for --ended-since."),
]
Prefix = Annotated[str | None, typer.Option("--prefix", help="Only executions whose names begin with this.")]
OfQualifier = Annotated[
    str | None,
    typer.Option(
        "--qualifier",
        metavar="VERSION|ALIAS",
        help="Only executions of this version or alias; LATEST: of the flow's own definition.",
    ),
]
Parked = Annotated[bool, typer.Option("--parked", help="Only parked executions, which the server cannot continue.")]
WaitingForRedrive = Annotated[bool, typer.Option("--waiting-redrive", help="Only those that wait for a redrive.")]


def filter_of(
    status: str | None,
    since: str | None,
    until: str | None,
    prefix: str | None,
    *,
    parked: bool = False,
    waiting: bool = False,
    ended_since: str | None = None,
    ended_until: str | None = None,
    qualifier: str | None = None,
) -> dict[str, Any]:
    """The conditions as the client names them; raises CommandFailed for those that exclude each other."""
    now = datetime.now(UTC)
    if (ended_since or ended_until) and status in (None, "running", "succeeded"):
        reason = "--ended-since and --ended-until are for executions that ended without success; say which"
        raise CommandFailed(f"{reason}: --status failed, stopped or timedout", ExitCode.USAGE)
    return {
        "status": None if status is None else STATUSES[status],
        "started_from": None if since is None else instant_of(since, "--since", now),
        "started_to": None if until is None else instant_of(until, "--until", now),
        "ended_from": None if ended_since is None else instant_of(ended_since, "--ended-since", now),
        "ended_to": None if ended_until is None else instant_of(ended_until, "--ended-until", now),
        "name_prefix": prefix,
        "parked": parked or None,
        "waiting_for_redrive": waiting or None,
        "qualifier": qualifier,
    }


FILTERS: Final = ("--flow", "--since", "--until", "--prefix")
"""The options of which one must be given where no execution is named."""


def chosen_executions(
    session: Session,
    named: Sequence[str] | None,
    flow: str | None,
    wanted: dict[str, Any],
    error: str | None = None,
    filters: Sequence[str] = FILTERS,
) -> list[tuple[str, str]]:
    """Flow and name of the executions that are named, or else of those that match.

    Raises CommandFailed for both, and for neither: it lists the `filters`, which are the options of the command.
    """
    check_choice(session, named, flow, wanted, error, filters)
    if named:
        return session.executions_of(named)
    return [(each.flow_name, each.name) for each in found_executions(session, flow, wanted, error)]


def check_choice(
    session: Session,
    named: Sequence[str] | None,
    flow: str | None,
    wanted: dict[str, Any],
    error: str | None,
    filters: Sequence[str],
) -> None:
    """Raises CommandFailed if there are both names and conditions, or neither."""
    conditions = [each for name, each in wanted.items() if name != "status"]
    if bool(named) == any(each is not None for each in (flow, error, *conditions)):
        options = f"{', '.join(filters[:-1])} or {filters[-1]}"
        reason = "give names or filters, not both" if named else f"name executions, or say which with {options}"
        raise CommandFailed(f"{reason}: {session.command} -h", ExitCode.USAGE)


def found_executions(
    session: Session, flow: str | None, wanted: dict[str, Any], error: str | None = None
) -> list[Execution]:
    """Those that match, without their documents; says so if there are none."""
    found = [each for each in session.executions(flow, **wanted) if error in (None, each.error)]
    if not found:
        session.note("No execution matches.")
    return found
