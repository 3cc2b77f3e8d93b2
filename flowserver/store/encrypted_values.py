"""Everything in the database that is encrypted once there is a key; what no key decrypts; encryption with another key.

Secrets of functions are always encrypted. The secrets of access keys and the keys of task tokens are encrypted if there
is a key when they are made, else stored in clear text until `encrypt_again`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Column, Connection, Table, delete, func, select, update

from flowserver.base.encryption import NO_ENCRYPTION, PREFIX, CannotDecrypt, Encryption
from flowserver.store.schema.secret_tables import named_secrets
from flowserver.store.schema.tables import access_keys, secrets

TASK_TOKEN_KEYS: Final = "task-tokens"  # noqa: S105 - the name of a row
"""The row of `secrets` with the keys of task tokens; other rows hold nothing secret."""

_PLACES: Final[tuple[tuple[Table, Column[str], Column[str]], ...]] = (
    (secrets, secrets.c.name, secrets.c.value),
    (access_keys, access_keys.c.access_key_id, access_keys.c.secret),
    (named_secrets, named_secrets.c.name, named_secrets.c.value),
)
"""Table, the column that names a row, and the column that may be encrypted."""


@dataclass(frozen=True, slots=True)
class EncryptedValue:
    """A value as it is stored."""

    table: Table
    named: Column[str]
    column: Column[str]
    name: str
    stored: str = field(repr=False)
    """Perhaps in clear text."""

    @property
    def place(self) -> str:
        """What its encryption says of where it is."""
        return place_of(self.table, self.name)


def place_of(table: Table, name: str) -> str:
    """Where the value of that row is, for its encryption."""
    return f"{table.name}/{name}"


def encrypted_values(connection: Connection) -> Iterator[EncryptedValue]:
    """All values that are encrypted or would be, in clear text, too."""
    for table, named, column in _PLACES:
        query = select(named, column).order_by(named)
        if table is secrets:
            query = query.where(named == TASK_TOKEN_KEYS)
        for name, stored in connection.execute(query).all():
            yield EncryptedValue(table, named, column, name, stored)


def has_encrypted(connection: Connection) -> bool:
    """Whether any value is encrypted; then new values should be, too."""
    wanted = (select(named).where(func.substr(column, 1, len(PREFIX)) == PREFIX) for _, named, column in _PLACES)
    return any(connection.execute(query.limit(1)).one_or_none() is not None for query in wanted)


def unreadable_values(connection: Connection, encryption: Encryption) -> list[EncryptedValue]:
    """The values that none of the keys decrypts."""
    return [each for each in encrypted_values(connection) if not _is_readable(each, encryption)]


def encrypt_again(connection: Connection, encryption: Encryption) -> int:
    """Encrypt everything with the first key that is not; returns how many values have changed.

    Raises CannotDecrypt for the first value that no key decrypts; the caller then rolls back. A value that a server
    changes at the same time keeps its new content.
    """
    others = [each for each in encrypted_values(connection) if not encryption.is_current(each.stored)]
    return sum(_store_again(connection, each, encryption, encryption) for each in others)


def decrypt_all(connection: Connection, encryption: Encryption) -> int:
    """Store everything in clear text; returns how many values have changed. Raises CannotDecrypt, as `encrypt_again`.

    Secrets of functions cannot be: the caller sees to it that there are none.
    """
    encrypted = [each for each in encrypted_values(connection) if each.stored.startswith(PREFIX)]
    return sum(_store_again(connection, each, encryption, NO_ENCRYPTION) for each in encrypted)


def _store_again(connection: Connection, value: EncryptedValue, old: Encryption, new: Encryption) -> int:
    fresh = new.protect(old.reveal(value.stored, value.place), value.place)
    change = update(value.table).where(value.named == value.name, value.column == value.stored)
    return connection.execute(change.values({value.column.name: fresh})).rowcount


def drop_value(connection: Connection, value: EncryptedValue) -> bool:
    """Delete a row that no key decrypts; False, and nothing is done, if a server has changed it meanwhile."""
    mine = (value.named == value.name) & (value.column == value.stored)
    return connection.execute(delete(value.table).where(mine)).rowcount > 0


def _is_readable(value: EncryptedValue, encryption: Encryption) -> bool:
    try:
        encryption.reveal(value.stored, value.place)
    except CannotDecrypt:
        return False
    return True
