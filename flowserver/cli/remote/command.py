"""How a command talks to a server: it gets a session, and its errors become exit codes."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

from flowserver.cli.choices import with_choices
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.session import Session
from flowserver.cli.variables import TOKEN_VARIABLE
from flowserver.client.errors import (
    AddressInvalid,
    ClientError,
    Conflict,
    Invalid,
    NotFound,
    NotPermitted,
    Refused,
    WaitedTooLong,
)

_CODES: Final[dict[type[ClientError], ExitCode]] = {
    AddressInvalid: ExitCode.USAGE,
    Conflict: ExitCode.CONFLICT,
    Invalid: ExitCode.FAILED,
    NotFound: ExitCode.NOT_FOUND,
    WaitedTooLong: ExitCode.FAILED,
}
"""How a command ends with an error of the client; with any other, the server cannot or will not serve the caller."""

SUGGESTED_FROM_MAX: Final = 1_000
"""Flows whose names are read for a suggestion."""

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
    return CommandFailed(f"{error}{_hint(session, error)}", code)


def _hint(session: Session, error: ClientError) -> str:
    """The name that was probably meant, if there is no flow of the given one."""
    if not isinstance(error, Refused) or error.code != "FlowNotExists" or session.asked_flow is None:
        return ""
    try:
        names = [flow.name for flow in islice(session.client.flows(), SUGGESTED_FROM_MAX)]
    except ClientError:
        return ""
    near = get_close_matches(session.asked_flow, names, n=1)
    return f"; did you mean {near[0]}?" if near else ""
