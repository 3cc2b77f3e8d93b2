"""What the drivers' errors tell: the database's own codes and words, and whether it is away."""

import sqlite3

from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock that was not had in time."""

NUL_STATES = ("22021", "22P05")
"""PostgreSQL's codes for NUL as a byte and as an escape in JSON; the driver refuses most such texts itself."""

READ_ONLY = "25006"
"""PostgreSQL's code for a write to a standby, as which a primary may come back for a while."""


def sqlstate_of(error: BaseException) -> str | None:
    """PostgreSQL's code of five characters; None if the error is not from there."""
    return getattr(getattr(error, "orig", None), "sqlstate", None)


def sqlite_code_of(error: BaseException) -> int | None:
    """SQLite's extended result code; None if the error is not from there."""
    return getattr(getattr(error, "orig", None), "sqlite_errorcode", None)


def reason_of(error: BaseException) -> str:
    """What the database said, in one line: without the statement, and without what users' data it was about."""
    said = str(getattr(error, "orig", None) or error)
    return next(iter(said.splitlines()), type(error).__name__)


def was_cut(error: object) -> bool:
    """Whether the connection had been ended, so that the same may work at once over another."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def holds_nul(error: BaseException) -> bool:
    """Whether a text could not be stored or looked for because it holds NUL, a character that PostgreSQL lacks."""
    return isinstance(error, DataError) and (sqlstate_of(error) in NUL_STATES or "NUL" in reason_of(error))


def is_away(error: Exception) -> bool:
    """Whether the database could not be reached, or could not write: the same may work a little later."""
    if isinstance(error, PoolTimeout):
        return True
    if isinstance(error, InternalError) and sqlstate_of(error) == READ_ONLY:
        return True
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    code = sqlite_code_of(error)  # SQLITE_ERROR is a mistake in what we told it
    return code is None or code & 0xFF != sqlite3.SQLITE_ERROR
