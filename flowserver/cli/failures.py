"""How commands fail: an error that a user can cause is one line on stderr and an exit code, never a traceback.

A bug gives a traceback and an exit code of its own, so that a script never takes it for a finding.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from typer.exceptions import TyperException

from flowserver.base.lazy_import import load
from flowserver.cli.closed_pipes import drop_unread, unread_is_dropped
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.printable import printable


class CommandFailed(Exception):
    """The command cannot do what it was asked; the message is for the person who typed it."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


_CLICK: Final = (typer.Exit, typer.Abort, TyperException)
"""What typer itself makes of an end."""

_OF_LOCAL: Final = "flowserver.cli.local_failures:failure_of"
"""Loaded when an error is not one of this module: commands that talk to a server do without its modules."""


@contextmanager
def ending_well() -> Iterator[None]:
    """End with one line and an exit code when what is done inside fails; for a bug, with its traceback.

    Where the output has no reader any more, it ends without a word.
    """
    try:
        yield
        return
    except _CLICK:
        raise
    except CommandFailed as error:
        failed = error
    except Exception as error:
        if isinstance(error, BrokenPipeError) and drop_unread():
            raise typer.Exit(ExitCode.UNREAD) from None
        found = _of_file(error) or load(_OF_LOCAL)(error)
        if found is None:
            traceback.print_exc()
            raise typer.Exit(ExitCode.CRASHED) from None
        failed = found
    with unread_is_dropped():
        typer.echo(printable(f"flowserver: {failed}"), err=True)
    raise typer.Exit(failed.code)


def _of_file(error: Exception) -> CommandFailed | None:
    if not isinstance(error, OSError) or error.filename is None:
        return None
    code = ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.UNREACHABLE
    return CommandFailed(f"{error.filename}: {error.strerror}", code)
