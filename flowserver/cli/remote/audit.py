"""The commands `flowserver audit …`."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit
from flowserver.cli.remote.output import one_line, show_list
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.times import instant_of, shown_instant
from flowserver.cli.server_options import takes_choices
from flowserver.client.server_results import AuditRecord

audit = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Key = Annotated[str | None, typer.Option("--key", metavar="ID", help="Only what was done with this access key.")]
Operation = Annotated[str | None, typer.Option("--operation", help="Only this operation, such as flows.delete.")]
Object = Annotated[
    str | None, typer.Option("--object", metavar="PATH", help="Only this object and its parts, such as flows/order.")
]
Outcome = Annotated[str | None, typer.Option("--result", help="Only this result: ok, or the code of an error.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="AGE", help="Only since then: an age (7d), `today`, or an instant.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="AGE", help="Only before then; as for --since.")]


@audit.callback()
@takes_choices
def _audit() -> None:
    """See who did what, and who was refused."""


@audit.command("list")
@remote
def list_audit(
    session: Session,
    key: Key = None,
    operation: Operation = None,
    object: Object = None,
    result: Outcome = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
) -> None:
    """List what was done, the newest first.

    This needs a key with the role `admin`. The setting `audit` of the server says what is recorded. The result
    `?` is not known: the operation is under way, or the server ended in it.

    \b
    Examples:
      flowserver audit list --since 1d
      flowserver audit list --object flows/order -o json
      flowserver audit list --result AccessDenied
    """
    now = datetime.now(UTC)
    found = session.client.audit(
        key=key,
        operation=operation,
        object=object,
        result=result,
        from_time=None if since is None else instant_of(since, "--since", now),
        to_time=None if until is None else instant_of(until, "--until", now),
    )
    columns = {
        "TIME": lambda one: shown_instant(one.time, now),
        "WHO": _who,
        "FROM": lambda one: one_line(f"{one.api} {one.address}", 30),
        "OPERATION": lambda one: one.operation,
        "OBJECT": lambda one: one_line(one.object, 60),
        "RESULT": _result,
    }
    show_list(session, found, columns, lambda one: one.id, "There are no such records.", limit)


def _who(record: AuditRecord) -> str:
    return one_line(record.caller or record.key or "-", 30)


def _result(record: AuditRecord) -> str:
    result = record.result or "?"
    return result if record.count == 1 else f"{result} ({record.count:,} times)"
