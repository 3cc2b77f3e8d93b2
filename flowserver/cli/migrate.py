"""The command `flowserver migrate`."""

import typer

from flowserver.cli.database_opening import bring_up_to_date, open_database, place_of
from flowserver.cli.options import DatabaseUrl, read_settings


def migrate(database_url: DatabaseUrl = None) -> None:
    """Bring the database up to date, or create it.

    A SQLite database must not be in use meanwhile: stop its server first.

    \b
    Examples:
      flowserver migrate
      flowserver migrate --database-url postgresql://flows@db.example.com/flows
    """
    with open_database(read_settings({"database_url": database_url}).database_url) as database:
        applied = bring_up_to_date(database)
        for revision in applied:
            typer.echo(f"applied migration {revision}")
        typer.echo(f"{place_of(database)} {'is now' if applied else 'was already'} up to date")
