"""The command `flowserver migrate`."""

from typing import Annotated

import typer

from flowserver.cli.database_opening import bring_up_to_date, is_new, open_database, place_of
from flowserver.cli.options import DatabaseUrl, read_settings
from flowserver.store.schema.migrating import missing_migrations
from flowserver.store.sql.database import Database

Plan = Annotated[bool, typer.Option("--plan", help="Only show which migrations are missing, and what each changes.")]
NoBackup = Annotated[bool, typer.Option("--no-backup", help="Do not back a SQLite database up first.")]


def migrate(plan: Plan = False, no_backup: NoBackup = False, database_url: DatabaseUrl = None) -> None:
    """Bring the database up to date, or create it.

    A SQLite database must not be in use meanwhile: stop its server first. It is backed up before it is changed, to
    `NAME.before-REVISION` beside it; delete that file when you do not need it. Back a PostgreSQL database up yourself.

    All migrations are one transaction: an error or an interruption leaves the database as it was.

    \b
    Examples:
      flowserver migrate --plan
      flowserver migrate
      flowserver migrate --database-url postgresql://flows@db.example.com/flows
    """
    with open_database(read_settings({"database_url": database_url}).database_url) as database:
        if plan:
            _show_plan(database)
            return
        done = bring_up_to_date(database, backs_up=not no_backup)
        if done.backup is not None:
            typer.echo(f"backed up to {done.backup}")
        for revision in done.applied:
            typer.echo(f"applied migration {revision}")
        typer.echo(f"{place_of(database)} {'is now' if done.applied else 'was already'} up to date")


def _show_plan(database: Database) -> None:
    if is_new(database):
        typer.echo(f"{place_of(database)} is new: all tables would be created")
        return
    missing = missing_migrations(database)
    for each in missing:
        typer.echo(f"  {each.revision}  {each.meaning}")
    typer.echo(f"{place_of(database)} {f'lacks {len(missing)} migrations' if missing else 'is up to date'}")
