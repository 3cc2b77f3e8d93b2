"""The command `flowserver copy`."""

import time
from contextlib import ExitStack
from typing import Annotated

import typer

from flowserver.cli.command_records import record_command
from flowserver.cli.database_opening import bring_up_to_date, open_database, place_of, require_up_to_date
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.server import sole_use
from flowserver.store.database_copy import CopyRefused, copy_database

Source = Annotated[
    str, typer.Argument(metavar="FROM_URL", help="The database to copy: sqlite:///FILE or postgresql://USER@HOST/NAME.")
]
Target = Annotated[
    str, typer.Argument(metavar="TO_URL", help="The database to fill: it must be empty; missing tables are created.")
]


def copy(source_url: Source, target_url: Target) -> None:
    """Copy all data into an empty database.

    SQLite to PostgreSQL, PostgreSQL to SQLite, or between two of a kind. Stop all servers of both databases first; the
    command refuses databases in use. It copies everything in one transaction: an interruption leaves the target empty.
    Then it reads the copy and compares every row.

    The source does not change. Do not run servers on both afterwards: each would run the same executions, and call
    their functions.

    \b
    Examples:
      flowserver copy sqlite:///data/flowserver.db postgresql://flows@db.example.com/flows
      flowserver copy postgresql://flows@db.example.com/flows sqlite:///laptop.db
    """
    began = time.monotonic()
    with ExitStack() as opened:
        source = opened.enter_context(open_database(source_url))
        require_up_to_date(source)
        target = opened.enter_context(open_database(target_url))
        if source.url == target.url:
            raise CommandFailed("a database cannot be copied into itself", ExitCode.USAGE)
        opened.enter_context(sole_use(source))
        bring_up_to_date(target)
        opened.enter_context(sole_use(target))
        rows = text_bytes = 0
        try:
            for table in copy_database(source, target):
                if table.rows:
                    typer.echo(f"  {table.name:<20} {table.rows:>12,} rows")
                rows, text_bytes = rows + table.rows, text_bytes + table.text_bytes
        except CopyRefused as error:
            raise CommandFailed(str(error), ExitCode.CONFLICT) from None
        with target.write() as connection:
            record_command(connection, "database.copy", "database")
        seconds = time.monotonic() - began
        typer.echo(
            f"copied {place_of(source)} to {place_of(target)}: {rows:,} rows, {text_bytes / 2**20:,.1f} MiB of text, "
            f"in {seconds:,.1f} s; every row is the same in both"
        )
