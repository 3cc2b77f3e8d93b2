"""The command `flowserver restore`."""

from pathlib import Path
from typing import Annotated

import typer

from flowserver.cli.databases import open_database, place_of
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import DatabaseUrl, read_settings
from flowserver.server import sole_use
from flowserver.store.restoring import BackupUnusable, restore_file
from flowserver.store.schema import is_up_to_date

Backup = Annotated[Path, typer.Argument(metavar="FILE", help="The backup: a SQLite database file.")]
Damaged = Annotated[
    bool, typer.Option("--damaged", help="Restore it although checks find damage or violations, which are shown.")
]


def restore(backup: Backup, damaged: Damaged = False, database_url: DatabaseUrl = None) -> None:
    """Put a backup in the place of the SQLite database.

    Stop the server first. The backup is copied beside the database, every row of it is checked, and only then does the
    copy take the database's place, in one step, readable by its owner only; the `-wal` and `-shm` of the old file are
    deleted. Then the database is checked once more. An interruption leaves the old database or the new one, whole.

    After a file was replaced by hand while a `-wal` waited, FILE may be the database file itself.

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
                "pg_restore --dbname URL --clean --if-exists FILE, while no server runs",
                ExitCode.USAGE,
            )
        if not backup.is_file():
            raise CommandFailed(f"there is no file {backup}", ExitCode.NOT_FOUND)
        with sole_use(database):
            try:
                found = restore_file(backup, file.resolve(), accepts_damage=damaged)
            except BackupUnusable as error:
                raise CommandFailed(str(error)) from None
            typer.echo(f"restored {place_of(database)} from {backup}")
            for finding in found:
                typer.echo(f"  damaged: {finding}")
            if not is_up_to_date(database):
                typer.echo("its tables are of an older version; next: flowserver migrate")
