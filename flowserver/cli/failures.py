"""How commands fail: whatever a user can bring about is one line on stderr and an exit code, never a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from sqlalchemy.exc import DBAPIError

from flowserver.api.guard import UnsafeBind
from flowserver.invokers.brokers import OutletInvalid
from flowserver.server import DatabaseInUse
from flowserver.store.database import DatabaseUrlInvalid
from flowserver.store.errors import reason_of
from flowserver.store.schema import SchemaOutdated, SchemaTooNew


class CommandFailed(Exception):
    """The command cannot do what it was asked; the message is for whoever typed it."""


_TELLING: Final = (
    CommandFailed, DatabaseInUse, DatabaseUrlInvalid, OutletInvalid, SchemaOutdated, SchemaTooNew, UnsafeBind
)  # fmt: skip


@contextmanager
def failing_with(exit_code: int) -> Iterator[None]:
    """End with that exit code and one line when what is done inside fails in a way that is known."""
    try:
        yield
        return
    except _TELLING as error:
        reason = str(error)
    except DBAPIError as error:
        reason = f"the database refuses: {reason_of(error)}"
    except OSError as error:
        if error.filename is None:
            raise
        reason = f"{error.filename}: {error.strerror}"
    typer.echo(f"flowserver: {reason}", err=True)
    raise typer.Exit(exit_code)
