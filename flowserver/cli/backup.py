"""The command `flowserver backup`."""

import sqlite3
from pathlib import Path
from typing import Annotated

import typer

from flowserver.cli.database_opening import open_ready_database, place_of
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.options import DatabaseUrl
from flowserver.store.sqlite_backup import BackupDamaged, back_up

Target = Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the backup; it must not exist yet.")]


def backup(target: Target, database_url: DatabaseUrl = None) -> None:
    """Back the SQLite database up, also while a server runs on it.

    The backup is the database at one moment, in one file that its owner alone can read: it contains secrets. It has
    its name only once it is whole, checked and on the disk. A server is not delayed by it.

    \b
    Examples:
      flowserver backup backup.db
      flowserver backup "backups/$(date +%F).db" --database-url sqlite:///data/flowserver.db
    """
    with open_ready_database(database_url) as database:
        if database.sqlite_file is None:
            raise CommandFailed(
                "PostgreSQL is backed up by its own program: pg_dump --format custom --file FILE URL, "
                "while servers run",
                ExitCode.USAGE,
            )
        try:
            size = back_up(database.sqlite_file.resolve(), target)
        except FileExistsError:
            raise CommandFailed(f"there is a file {target}; choose another name", ExitCode.CONFLICT) from None
        except (BackupDamaged, sqlite3.Error) as error:
            raise CommandFailed(str(error)) from None
        except OSError as error:
            raise CommandFailed(f"{error.filename or target}: {error.strerror}") from None
        typer.echo(f"backed up {place_of(database)} to {target}: {size / 2**20:,.1f} MiB")
