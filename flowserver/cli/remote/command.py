"""How a command talks to a server: it gets a session, and its errors become exit codes."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
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

_FIELD: Final = re.compile(r"(?P<before>^|; )`?(?P<field>[A-Za-z]+)`?(?=: | must | has | is )")
"""The field of the API with which a message begins; messages of several fields are joined with semicolons."""

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
    said = _with_flags(str(error), session.flags) if isinstance(error, Invalid) else str(error)
    return CommandFailed(f"{said}{load(_SUGGESTION)(session, error)}", code)


def _with_flags(text: str, flags: Sequence[str]) -> str:
    """The message of a refusal with `--cron` in place of `CronExpression`, as far as flags and fields are alike."""
    squeezed = {each.replace("-", ""): each for each in flags}

    def flag_of(found: re.Match[str]) -> str:
        field = found["field"].lower()
        near = [name for name in squeezed if field.startswith(name) or field.endswith(name)]
        return found["before"] + squeezed[max(near, key=len)] if near else found[0]

    return _FIELD.sub(flag_of, text)
