"""Access keys, used nonces, and the keys that the server generates for itself."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.dml import UpdateBase

from flowserver.base.nonces import Nonce
from flowserver.store.schema.sign_in_tables import sign_in_links
from flowserver.store.schema.tables import access_keys, nonces, secrets
from flowserver.store.sql.prepared import execute_many, write_later
from flowserver.store.sql.upserts import insert_of

KEYS_SEEN = "keys-seen"
"""The row of `secrets` that exists once a key was created: losing the keys must not open the server."""

NO_KEY = ""
"""No access key has this id."""

TRIAL_MS = 60_000
"""How long the row written by `try_write` is kept."""

DELETED_AT_ONCE = 1_000
"""How many nonces one call deletes, as all other writes wait for it; each sweep of `engine/recovery.py` makes one."""


class Admission(StrEnum):
    """Which callers the database allows."""

    OPEN = "open"
    """There was never a key: every program on this machine may call."""

    KEYED = "keyed"
    """There are keys: callers need an enabled one. Disabling the last key does not open the server."""

    LOST = "lost"
    """There was a key, but no key row is left: no caller is allowed until a key is created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """An access key; instants in ms. Of the bearer token only the digest is stored."""

    access_key_id: str
    secret: str = field(repr=False)
    token_digest: str
    label: str
    created_at: int
    disabled_at: int | None = None
    role: str = "admin"
    flows: str = ""
    """What the names of the flows begin with that it is for."""

    expires_at: int | None = None
    last_used_at: int | None = None
    """To about a minute."""


def token_digest(token: str) -> str:
    """The digest by which a bearer token is stored and found. Tokens are random, so plain SHA-256 is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _access_key(row: Row[Any]) -> AccessKey:
    return AccessKey(**row._mapping)


def read_admission(connection: Connection) -> Admission:
    """Which callers are allowed."""
    seen = select(secrets.c.name).where(secrets.c.name == KEYS_SEEN)
    has_keys, were_seen = connection.execute(select(select(access_keys).exists(), seen.exists())).one()
    if has_keys:
        return Admission.KEYED
    return Admission.LOST if were_seen else Admission.OPEN


def remember_keys(connection: Connection) -> None:
    """Record that there was a key, if there is one, also for keys created by a version that did not record it."""
    if read_admission(connection) is Admission.KEYED:
        keep_secret(connection, KEYS_SEEN, "yes")


def delete_keys(connection: Connection) -> int:
    """Delete every key, the record of them and all sign-in links, so that the server is open after its next start.

    Returns how many keys there were.
    """
    connection.execute(delete(sign_in_links))
    connection.execute(delete(secrets).where(secrets.c.name == KEYS_SEEN))
    return connection.execute(delete(access_keys)).rowcount


def find_access_key(connection: Connection, access_key_id: str, now_ms: int) -> AccessKey | None:
    """The key with that id, if it is enabled and has not expired."""
    return _find_usable(connection, access_keys.c.access_key_id == access_key_id, now_ms)


def find_key_by_token(connection: Connection, digest: str, now_ms: int) -> AccessKey | None:
    """The key whose bearer token has that digest, if it is enabled and has not expired."""
    return _find_usable(connection, access_keys.c.token_digest == digest, now_ms)


def _find_usable(connection: Connection, wanted: ColumnElement[bool], now_ms: int) -> AccessKey | None:
    lives = access_keys.c.expires_at.is_(None) | (access_keys.c.expires_at > now_ms)
    row = connection.execute(select(access_keys).where(wanted, access_keys.c.disabled_at.is_(None), lives))
    found = row.one_or_none()
    return None if found is None else _access_key(found)


def note_key_use(connection: Connection, access_key_id: str, now_ms: int) -> None:
    """Record that a key was used; an earlier instant than the recorded one changes nothing."""
    earlier = access_keys.c.last_used_at.is_(None) | (access_keys.c.last_used_at < now_ms)
    mine = access_keys.c.access_key_id == access_key_id
    connection.execute(update(access_keys).where(mine, earlier).values(last_used_at=now_ms))


def list_access_keys(connection: Connection) -> list[AccessKey]:
    """All keys, oldest first."""
    return [_access_key(row) for row in connection.execute(select(access_keys).order_by(access_keys.c.created_at))]


@dataclass(frozen=True, slots=True)
class ShownKey:
    """What may be shown of an access key; instants in ms."""

    access_key_id: str
    label: str
    created_at: int
    disabled_at: int | None
    role: str
    flows: str
    expires_at: int | None
    last_used_at: int | None


def list_shown_keys(connection: Connection, after: tuple[int, str], limit: int) -> list[ShownKey]:
    """Keys without their secrets, oldest first, after that creation and id."""
    place = access_keys.c.created_at, access_keys.c.access_key_id
    query = select(*(access_keys.c[each.name] for each in fields(ShownKey)))
    rows = connection.execute(query.where(tuple_(*place) > after).order_by(*place).limit(limit))
    return [ShownKey(*row) for row in rows]


def insert_access_key(connection: Connection, key: AccessKey) -> None:
    """Insert a key and record that there was one."""
    columns = [column.name for column in access_keys.c]
    connection.execute(insert(access_keys), {name: getattr(key, name) for name in columns})
    keep_secret(connection, KEYS_SEEN, "yes")


def disable_access_key(connection: Connection, access_key_id: str, now_ms: int) -> bool:
    """Disable a key permanently; False if there is no enabled key with that id."""
    usable = (access_keys.c.access_key_id == access_key_id) & access_keys.c.disabled_at.is_(None)
    return connection.execute(update(access_keys).where(usable).values(disabled_at=now_ms)).rowcount > 0


def use_nonce(connection: Connection, nonce: Nonce) -> bool:
    """Store a nonce until it expires; False if it was used before."""
    return execute_many(connection, _use_nonces(insert_of(connection)), [_nonce_row(nonce)]) > 0


def use_nonces_later(connection: Connection, used: Sequence[Nonce], error: type[Exception]) -> None:
    """Store nonces until they expire; raises the error if one of them was used before.

    On PostgreSQL as late as with the COMMIT, which then fails.
    """
    rows = [_nonce_row(nonce) for nonce in used]
    write_later(connection, _use_nonces(insert_of(connection)), rows, unless_all_change=error)


def nonce_expires_at(connection: Connection, nonce: Nonce) -> int | None:
    """Until when (ms) a nonce is stored; None if it is not."""
    mine = (nonces.c.access_key_id == nonce.access_key_id) & (nonces.c.nonce == nonce.text)
    return connection.execute(select(nonces.c.expires_at).where(mine)).scalar_one_or_none()


def _nonce_row(nonce: Nonce) -> dict[str, Any]:
    return {"access_key_id": nonce.access_key_id, "nonce": nonce.text, "expires_at": nonce.expires_at}


@cache
def _use_nonces(insert_here: Any) -> UpdateBase:
    """Cached, so that the statement is compiled once per database."""
    statement: UpdateBase = insert_here(nonces).on_conflict_do_nothing()
    return statement


def delete_expired_nonces(connection: Connection, now_ms: int) -> int:
    """Delete the oldest expired nonces, DELETED_AT_ONCE at most; returns how many."""
    key = (nonces.c.access_key_id, nonces.c.nonce)
    over = select(*key).where(nonces.c.expires_at < now_ms).order_by(nonces.c.expires_at).limit(DELETED_AT_ONCE)
    # PostgreSQL: without rows that another node is deleting; a CTE, since it may read a subquery several times.
    some = over.with_for_update(skip_locked=True).cte("some")
    deleted = delete(nonces).where(tuple_(*key).in_(select(some))).returning(nonces.c.nonce)
    return len(connection.execute(deleted).all())


def try_write(connection: Connection, node_id: str, now_ms: int) -> None:
    """Test whether the database accepts writes: stores a nonce that belongs to no key, one for each node."""
    row = {"access_key_id": NO_KEY, "nonce": node_id, "expires_at": now_ms + TRIAL_MS}
    execute_many(connection, _try_write(insert_of(connection)), [row])


@cache
def _try_write(insert_here: Any) -> UpdateBase:
    statement = insert_here(nonces)
    latest = {"expires_at": statement.excluded.expires_at}
    written: UpdateBase = statement.on_conflict_do_update(index_elements=list(nonces.primary_key), set_=latest)
    return written


def keep_secret(connection: Connection, name: str, fresh: str) -> str:
    """The server's secret with that name; if there is none, `fresh` is stored as it."""
    query = select(secrets.c.value).where(secrets.c.name == name)
    known = connection.execute(query).scalar_one_or_none()
    if known is not None:
        return str(known)
    try:
        with connection.begin_nested():
            connection.execute(insert(secrets), {"name": name, "value": fresh})
    except IntegrityError:  # another node stored one first
        return str(connection.execute(query).scalar_one())
    return fresh
