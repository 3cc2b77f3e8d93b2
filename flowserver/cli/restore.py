"""The command `flowserver restore`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy.exc import DBAPIError

from flowserver.cli.command_records import record_command
from flowserver.cli.database_opening import open_database, place_of
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.fence import described_calls
from flowserver.cli.options import DatabaseUrl, read_settings
from flowserver.server import sole_use
from flowserver.store.access_keys import Admission
from flowserver.store.schema.revision import is_up_to_date
from flowserver.store.sql.database import Database
from flowserver.store.sql.errors import reason_of
from flowserver.store.sqlite_restore import BackupUnusable, Restored, restore_file

Backup = Annotated[Path, typer.Argument(metavar="FILE", help="The backup: a SQLite database file.")]
Damaged = Annotated[
    bool,
    typer.Option(
        "--damaged",
        help="Restore it although checks find damage or violations, which are shown. "
        "If SQLite cannot open the file, this does not help: `sqlite3 FILE .recover` may save a part of it.",
    ),
]


def restore(backup: Backup, damaged: Damaged = False, database_url: DatabaseUrl = None) -> None:
    """Replace the SQLite database with a backup.

    Stop the server first. The command copies the backup beside the database and checks every row of the copy. Then the
    copy replaces the database in one step, readable by its owner only, and the command checks it once more. An
    interruption leaves the whole old database or the whole new one.

    The server then continues from the moment of the backup. So the command lists the executions and the asynchronous
    invocations that have called functions since: those that the backup knows may make the calls again, and the others
    are gone.

    The old database is kept beside the new one, as `NAME.before-restore`, until the next restore; you may delete it.
    If the server needed access keys and the backup has none, the server refuses all callers until you create a key.
    Keys that the old database has disabled stay disabled.

    If the database file was replaced by hand beside a `-wal`, FILE may be that database file itself.

    \b
    Examples:
      flowserver restore backup.db
      flowserver restore backup.db --database-url sqlite:///data/flowserver.db
    """
    with open_database(read_settings({"database_url": database_url}).database_url) as database:
        file = database.sqlite_file
        if file is None:
            raise CommandFailed(
                "PostgreSQL is restored by its own program: "
                "pg_restore --dbname URL FILE, into a new database; then flowserver fence OLD_URL URL",
                ExitCode.USAGE,
            )
        if not backup.is_file():
            raise CommandFailed(f"there is no file {backup}", ExitCode.NOT_FOUND)
        with sole_use(database):
            try:
                restored = restore_file(backup, file.resolve(), accepts_damage=damaged)
            except BackupUnusable as error:
                raise CommandFailed(str(error)) from None
            typer.echo(f"restored {place_of(database)} from {backup}")
            for line in _described(restored):
                typer.echo(line)
            if is_up_to_date(database):
                _record(database)
            else:
                typer.echo("its tables are of an older version; next: flowserver migrate")


def _record(database: Database) -> None:
    """Record it in the audit. A database that was restored although it is damaged may refuse that."""
    try:
        with database.write() as connection:
            record_command(connection, "database.restore", "database")
    except DBAPIError as error:
        typer.echo(f"the audit has no record of this: {reason_of(error)}")


def _described(restored: Restored) -> Iterator[str]:
    for finding in restored.findings:
        yield f"  damaged: {finding}"
    if restored.kept is not None:
        yield f"the database before it is {restored.kept}; delete it when you do not need it"
    if restored.not_kept is not None:
        yield f"the database before it could not be kept: {restored.not_kept}"
    if restored.called_since is not None:
        yield from described_calls(restored.called_since)
    elif restored.kept is not None:
        yield "nothing tells what has called functions since the backup: the two databases could not be compared"
    if restored.admission is Admission.LOST:
        yield (
            "it has no access keys, but there were some: the server stays closed until `flowserver keys create`, "
            "or `flowserver keys open` to let every program on its machine in"
        )
    if restored.admission is Admission.KEYED and not restored.stays_disabled:
        yield (
            "its access keys are those of the backup, and nothing tells which of them were disabled since: "
            "compare `flowserver keys list` before you start the server"
        )
    if restored.admission is Admission.OPEN and restored.keys_unknown:
        yield (
            "the database before it, or its -wal, could not be read; if it had access keys, create one before you "
            "start the server, which is open otherwise: flowserver keys create"
        )
