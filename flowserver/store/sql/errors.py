"""Reads drivers' errors: the database's codes and messages, and whether the database is unavailable."""

import sqlite3

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

LOCK_NOT_AVAILABLE = "55P03"
"""PostgreSQL's code for a lock time-out."""

NUL_STATES = ("22021", "22P05")
"""PostgreSQL's codes for NUL as a byte and as a JSON escape; the driver rejects most such texts itself."""

CONFLICT_STATES = ("40P01", "40001")
"""PostgreSQL's codes for a deadlock that ended this transaction, and for a serialization failure."""

READ_ONLY = "25006"
"""PostgreSQL's code for a write to a standby; after a failover a former primary may be one for a while."""


def sqlstate_of(error: BaseException) -> str | None:
    """PostgreSQL's code of five characters; None if the error is not PostgreSQL's."""
    return getattr(getattr(error, "orig", None), "sqlstate", None)


def sqlite_code_of(error: BaseException) -> int | None:
    """SQLite's extended result code; None if the error is not SQLite's."""
    return getattr(getattr(error, "orig", None), "sqlite_errorcode", None)


def reason_of(error: BaseException) -> str:
    """The database's message in one line, without the statement and without users' data."""
    said = str(getattr(error, "orig", None) or error)
    return next(iter(said.splitlines()), type(error).__name__)


def lost_connection(error: object) -> bool:
    """Whether the connection was closed, so that a retry on another connection may succeed at once."""
    return isinstance(error, DBAPIError) and error.connection_invalidated


def was_refused(error: BaseException) -> bool:
    """Whether PostgreSQL refused a statement or the COMMIT, so that nothing is committed."""
    return sqlstate_of(error) is not None and not lost_connection(error)


def holds_nul(error: BaseException) -> bool:
    """Whether a text was rejected because it contains NUL, which PostgreSQL cannot store."""
    return isinstance(error, DataError) and (sqlstate_of(error) in NUL_STATES or "NUL" in reason_of(error))


def is_conflict(error: Exception) -> bool:
    """Whether another transaction conflicted with this one: another try sees the new state."""
    return isinstance(error, IntegrityError) or sqlstate_of(error) in CONFLICT_STATES


def is_away(error: Exception) -> bool:
    """Whether the database is unreachable or cannot write, so that a later retry may succeed."""
    if isinstance(error, PoolTimeout):
        return True
    if isinstance(error, InternalError) and sqlstate_of(error) == READ_ONLY:
        return True
    if not isinstance(error, (OperationalError, InterfaceError)):
        return False
    code = sqlite_code_of(error)  # SQLITE_ERROR means a mistake in our statement
    return code is None or code & 0xFF != sqlite3.SQLITE_ERROR
