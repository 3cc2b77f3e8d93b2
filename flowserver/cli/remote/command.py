"""How a command talks to a server: it gets a session, and its errors become exit codes."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from flowserver.base.lazy_import import load
from flowserver.cli.environment_variables import TOKEN_VARIABLE
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.session import Session
from flowserver.cli.server_options import with_choices
from flowserver.client.errors import (
    AddressInvalid,
    ClientError,
    Conflict,
    Invalid,
    NameInvalid,
    NotFound,
    NotPermitted,
    WaitedTooLong,
)

_CODES: Final[dict[type[ClientError], ExitCode]] = {
    AddressInvalid: ExitCode.USAGE,
    Conflict: ExitCode.CONFLICT,
    Invalid: ExitCode.FAILED,
    NameInvalid: ExitCode.USAGE,
    NotFound: ExitCode.NOT_FOUND,
    WaitedTooLong: ExitCode.FAILED,
}
"""How a command ends with an error of the client; with any other, the server cannot or will not serve the caller."""

_SUGGESTION: Final = "flowserver.cli.remote.suggestions:suggestion"
"""Loaded when a command fails."""

KEY_WANTED: Final = (
    f"the server has access keys: set {TOKEN_VARIABLE}, or --token @FILE, to what `flowserver keys create` has shown"
)


def remote(command: Callable[..., None]) -> Callable[..., None]:
    """Turn `command(session, …)` into a command that takes the common options in place of the session."""

    def run(chosen: Mapping[str, Any], **own: Any) -> None:
        session = Session(chosen)
        try:
            command(session, **own)
        except ClientError as error:
            raise _failure(session, error) from None
        finally:
            session.close()

    return with_choices(run, command, list(inspect.signature(command).parameters.values())[1:])


def _failure(session: Session, error: ClientError) -> CommandFailed:
    if isinstance(error, NotPermitted) and error.status == 401 and session.token is None:
        return CommandFailed(KEY_WANTED, ExitCode.UNREACHABLE)
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), ExitCode.UNREACHABLE)
    return CommandFailed(f"{error}{load(_SUGGESTION)(session, error)}", code)
