"""How commands fail: an error that a user can cause is one line on stderr and an exit code, never a traceback.

A bug gives a traceback and an exit code of its own, so that a script never takes it for a finding.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from sqlalchemy.exc import DBAPIError
from typer.exceptions import TyperException

from flowserver.api.guard import UnsafeBind
from flowserver.cli.exit_codes import ExitCode
from flowserver.hosting.errors import (
    HandlerFailed,
    HostingConflict,
    HostingMissing,
    HostingMistake,
    HostingUnreachable,
)
from flowserver.invokers.brokers import OutletInvalid
from flowserver.server import DatabaseInUse
from flowserver.store.schema.revision import SchemaOutdated, SchemaTooNew
from flowserver.store.sql.database import DatabaseUrlInvalid
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.sqlite_files import LogOfAnotherFile


class CommandFailed(Exception):
    """The command cannot do what it was asked; the message is for the person who typed it."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


_CODES: Final[dict[type[Exception], ExitCode]] = {
    DatabaseInUse: ExitCode.CONFLICT,
    DatabaseUrlInvalid: ExitCode.USAGE,
    HandlerFailed: ExitCode.FAILED,
    HostingConflict: ExitCode.CONFLICT,
    HostingMissing: ExitCode.NOT_FOUND,
    HostingMistake: ExitCode.USAGE,
    HostingUnreachable: ExitCode.UNREACHABLE,
    LogOfAnotherFile: ExitCode.CONFLICT,
    OutletInvalid: ExitCode.USAGE,
    SchemaOutdated: ExitCode.CONFLICT,
    SchemaTooNew: ExitCode.CONFLICT,
    UnsafeBind: ExitCode.UNREACHABLE,
}
"""Errors whose message is for the person who typed the command."""

_CLICK: Final = (typer.Exit, typer.Abort, TyperException)
"""What typer itself makes of an end."""


@contextmanager
def ending_well() -> Iterator[None]:
    """End with one line and an exit code when what is done inside fails; for a bug, with its traceback."""
    try:
        yield
        return
    except _CLICK:
        raise
    except CommandFailed as error:
        code, reason = error.code, str(error)
    except tuple(_CODES) as error:
        code, reason = _CODES[type(error)], str(error)
    except DBAPIError as error:
        code, reason = ExitCode.UNREACHABLE, f"the database refuses: {reason_of(error)}"
    except Exception as error:
        if not isinstance(error, OSError) or error.filename is None:
            traceback.print_exc()
            raise typer.Exit(ExitCode.CRASHED) from None
        code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.UNREACHABLE
        reason = f"{error.filename}: {error.strerror}"
    typer.echo(f"flowserver: {reason}", err=True)
    raise typer.Exit(code)
