"""Damaged rows: finds what is wrong with a stored value, and whether a database error means damage.

SQLite accepts any value in any column, and a damaged file can hold anything. Bytes that are not UTF-8 are read as
surrogates (`decode_text`), so that one bad row does not fail the whole query; readers of the row check it here.
"""

import logging
import sqlite3
from collections.abc import Iterable
from typing import Any, overload

from sqlalchemy import BigInteger, Column, Connection, Row, Select
from sqlalchemy.exc import DBAPIError

from flowserver.base.clock import INSTANT_MS_MAX
from flowserver.store.sql.errors import sqlite_code_of, sqlstate_of

log = logging.getLogger(__name__)

DAMAGE_CLASSES = ("XX", "58")
"""Classes of PostgreSQL's error codes: data or an index is corrupted; a file cannot be read."""

DAMAGE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
READ_FAILURES = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
"""SQLite's codes for the same."""

REPLACED = "\ufffd"
"""Stored in place of a character that cannot be stored."""

Check = tuple[str, type[Any], bool, bool]
"""Of a column: name, Python type of its values, whether it may be NULL, whether it holds an instant."""


@overload
def storable(text: str) -> str: ...


@overload
def storable(text: None) -> None: ...


def storable(text: str | None) -> str | None:
    """The text without NUL (PostgreSQL cannot store it) and surrogates; names of errors may contain both."""
    return None if text is None else text.replace("\0", REPLACED).encode("utf-8", "replace").decode()


def decode_text(stored: bytes) -> str:
    """Decodes a stored text. Bytes that are not UTF-8 become surrogates, which valid text never contains."""
    return stored.decode("utf-8", "surrogateescape")


def is_text(value: object) -> bool:
    """Whether the value is valid text, which can be stored, compared and sent."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def legible(value: Any) -> Any:
    """A stored text for people to read, with U+FFFD for bytes that are not UTF-8. Other values stay as they are."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def checks_of(columns: Iterable[Column[Any]]) -> tuple[Check, ...]:
    """The checks of these columns for `damage_in`, in their order."""
    return tuple(
        (column.name, column.type.python_type, bool(column.nullable), isinstance(column.type, BigInteger))
        for column in columns
    )


def damage_in(values: Iterable[Any], checks: tuple[Check, ...]) -> str | None:
    """What is wrong with the first invalid value of a row; None if all values are valid."""
    value: Any
    for value, (name, kind, is_nullable, is_instant) in zip(values, checks, strict=True):
        if value is None:
            if not is_nullable:
                return f"its {name} is missing"
        elif type(value) is not kind:
            return f"its {name} is of type {type(value).__name__}"
        elif kind is str:
            if not (value.isascii() or is_text(value)):
                return f"its {name} is not valid UTF-8"
        elif is_instant and value > INSTANT_MS_MAX:
            return f"its {name} is not an instant"
    return None


def is_damage(error: BaseException | None) -> bool:
    """Whether the database reports that it cannot read or change these rows; it may work for others."""
    if not isinstance(error, DBAPIError) or error.connection_invalidated:
        return False
    state = sqlstate_of(error)
    if state is not None:
        return bool(state[:2] in DAMAGE_CLASSES)
    code = sqlite_code_of(error)
    return code is not None and (code & 0xFF in DAMAGE_CODES or code in READ_FAILURES)


def rows_with_texts(connection: Connection, page: Select[Any], limit: int, *names: str) -> list[Row[Any]]:
    """The first `limit` rows of an ordered query in which the columns `names` are valid text.

    Other rows are left out and logged: no request and no cursor could name them.
    """
    asked = limit
    while True:
        rows = connection.execute(page.limit(asked)).all()
        bad = [row for row in rows if not all(is_text(getattr(row, name)) for name in names)]
        if len(rows) - len(bad) >= limit or len(rows) < asked:
            for row in bad:
                log.warning("a damaged row is left out of a list: %s", [legible(value) for value in row[:3]])
            return [row for row in rows if row not in bad][:limit] if bad else list(rows)
        asked *= 2
