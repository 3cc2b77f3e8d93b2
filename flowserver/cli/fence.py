"""The command `flowserver fence`."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated

import typer

from flowserver.cli.command_records import record_command
from flowserver.cli.database_opening import open_database, place_of, require_up_to_date
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.server import sole_use
from flowserver.store.database_copy import CopyRefused
from flowserver.store.fencing import CalledSince, Callers
from flowserver.store.fencing import fence as fence_databases

Before = Annotated[str, typer.Argument(metavar="OLD_URL", help="The database before the restore.")]
New = Annotated[str, typer.Argument(metavar="NEW_URL", help="The restored database, on which servers will run.")]


def fence(before_url: Before, restored_url: New) -> None:
    """Carry over to a restored database what must stay done.

    A restored database continues from the moment of its backup. So keys that the old database has disabled are
    disabled in the new one, signed requests that it has served cannot be repeated, sign-in links of the backup are
    void, and a server that needed keys still needs them. Then the command lists the executions and the asynchronous
    invocations that have called functions since the backup: those that the backup knows may make the calls again, and
    the others are gone.

    Stop all servers first; the command refuses databases in use. Do not run servers on the old one afterwards. You may
    repeat the command. `flowserver restore` does all this for SQLite.

    \b
    Examples:
      flowserver fence postgresql://db.example.com/flows postgresql://db.example.com/flows_restored
    """
    with ExitStack() as opened:
        before, restored = (opened.enter_context(open_database(url)) for url in (before_url, restored_url))
        if before.url == restored.url:
            raise CommandFailed("a database cannot be compared with itself", ExitCode.USAGE)
        for database in (before, restored):
            require_up_to_date(database)
            opened.enter_context(sole_use(database))
        try:
            fenced = fence_databases(before, restored)
        except CopyRefused as error:
            raise CommandFailed(str(error), ExitCode.CONFLICT) from None
        with restored.write() as connection:
            record_command(connection, "database.fence", "database")
        typer.echo(
            f"compared {place_of(restored)} with {place_of(before)}: {fenced.disabled_keys} keys disabled, "
            f"{fenced.nonces} used nonces added"
        )
        for line in described_calls(fenced.called_since):
            typer.echo(line)


def described_calls(called: CalledSince) -> Iterator[str]:
    """What to know of all that has called functions since a backup; nothing if nothing has."""
    yield from _described_callers("executions", called.executions)
    yield from _described_callers("asynchronous invocations", called.invocations)


def _described_callers(kind: str, callers: Callers) -> Iterator[str]:
    if not callers.count:
        return
    yield (
        f"{callers.count} {kind} have called functions since the backup. "
        "If it knows them, they may make these calls again; if not, they are gone:"
    )
    yield from (f"  {each}" for each in callers.shown)
    if callers.count > len(callers.shown):
        yield "  and further ones"
