"""Errors of commands that work by themselves, on a database, as a server or as a host, instead of asking a server."""

from typing import Final

from sqlalchemy.exc import DBAPIError

from flowserver.api.keyless_access import UnsafeBind
from flowserver.base.signed_messages import SigningSecretsInvalid
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.hosting.errors import (
    HandlerFailed,
    HostingConflict,
    HostingMissing,
    HostingMistake,
    HostingUnreachable,
)
from flowserver.invokers.brokers import OutletInvalid
from flowserver.invokers.network_lists import NetworkListInvalid
from flowserver.server import DatabaseFolderMissing, DatabaseInUse, SecretsKeyWrong
from flowserver.store.schema.foreign_databases import ForeignDatabase
from flowserver.store.schema.revision import SchemaOutdated, SchemaTooNew
from flowserver.store.sql.database import DatabaseUrlInvalid
from flowserver.store.sql.errors import reason_of
from flowserver.store.sql.sqlite_files import LogOfAnotherFile
from flowserver.tracing.spans import TracingUnavailable

_CODES: Final[dict[type[Exception], ExitCode]] = {
    DatabaseFolderMissing: ExitCode.NOT_FOUND,
    DatabaseInUse: ExitCode.CONFLICT,
    DatabaseUrlInvalid: ExitCode.USAGE,
    ForeignDatabase: ExitCode.CONFLICT,
    HandlerFailed: ExitCode.FAILED,
    HostingConflict: ExitCode.CONFLICT,
    HostingMissing: ExitCode.NOT_FOUND,
    HostingMistake: ExitCode.USAGE,
    HostingUnreachable: ExitCode.UNREACHABLE,
    LogOfAnotherFile: ExitCode.CONFLICT,
    NetworkListInvalid: ExitCode.USAGE,
    OutletInvalid: ExitCode.USAGE,
    SchemaOutdated: ExitCode.CONFLICT,
    SchemaTooNew: ExitCode.CONFLICT,
    SecretsKeyWrong: ExitCode.CONFLICT,
    SigningSecretsInvalid: ExitCode.USAGE,
    TracingUnavailable: ExitCode.USAGE,
    UnsafeBind: ExitCode.UNREACHABLE,
}
"""Errors whose message is for the person who typed the command."""


def failure_of(error: Exception) -> CommandFailed | None:
    """How the command fails with this error; None if the error is a bug."""
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), None)
    if code is not None:
        return CommandFailed(str(error), code)
    if isinstance(error, DBAPIError):
        return CommandFailed(f"the database refuses: {reason_of(error)}", ExitCode.UNREACHABLE)
    return None
