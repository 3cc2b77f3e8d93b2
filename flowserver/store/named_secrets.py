"""Secrets by name: encrypted rows, the values that calls need, and what refers to them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, delete, func, or_, select

from flowserver.base.encryption import CannotDecrypt, Encryption
from flowserver.base.secret_references import MARK, filled_text, filled_url, secrets_named_in
from flowserver.store.encrypted_values import place_of
from flowserver.store.schema.secret_tables import named_secrets
from flowserver.store.schema.tables import functions
from flowserver.store.sql.upserts import insert_of

USES_MAX: Final = 100
"""How many uses of one secret are listed."""

_REFERRING: Final = (functions.c.url, functions.c.headers, functions.c.initialize_url, functions.c.pre_stop_url)
"""What may refer to secrets."""


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A secret without its value; instants in ms."""

    name: str
    created_at: int
    modified_at: int


@dataclass(frozen=True, slots=True)
class SecretUse:
    """A function that refers to a secret."""

    service: str
    function: str


class Target(Protocol):
    """What calls need of a function; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def url(self) -> str: ...  # noqa: D102
    @property
    def headers(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def initialize_url(self) -> str | None: ...  # noqa: D102
    @property
    def pre_stop_url(self) -> str | None: ...  # noqa: D102


T = TypeVar("T", bound=Target)


class SecretUnavailable(Exception):
    """A secret that a call needs is missing or cannot be decrypted; the message names it and holds no value."""

    def __init__(self, name: str, *, is_missing: bool) -> None:
        reason = "does not exist" if is_missing else "cannot be decrypted with the keys of this server"
        super().__init__(f"the secret {name} {reason}")
        self.is_missing = is_missing


def place_of_secret(name: str) -> str:
    """Where the secret is, for its encryption."""
    return place_of(named_secrets, name)


def put_secret(connection: Connection, name: str, encrypted: str, now_ms: int) -> bool:
    """Create or replace a secret; True if it is new."""
    changed = {"value": encrypted, "modified_at": now_ms}
    statement = insert_of(connection)(named_secrets).values(name=name, created_at=now_ms, **changed)
    added = statement.on_conflict_do_nothing().returning(named_secrets.c.name)
    if connection.execute(added).one_or_none() is not None:
        return True
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))
    return False


def find_secret(connection: Connection, name: str) -> SecretRow | None:
    """The secret; None if there is none of this name."""
    row = connection.execute(_SHOWN.where(named_secrets.c.name == name)).one_or_none()
    return None if row is None else SecretRow(*row)


def list_secrets(connection: Connection, after: str, limit: int) -> list[SecretRow]:
    """Secrets by name, after that name."""
    query = _SHOWN.where(named_secrets.c.name > after).order_by(named_secrets.c.name).limit(limit)
    return [SecretRow(*row) for row in connection.execute(query)]


def count_secrets(connection: Connection) -> int:
    """How many secrets there are."""
    return int(connection.execute(select(func.count()).select_from(named_secrets)).scalar_one())


def delete_secret(connection: Connection, name: str) -> bool:
    """Delete a secret; False if there is none of this name."""
    return connection.execute(delete(named_secrets).where(named_secrets.c.name == name)).rowcount > 0


def missing_secrets(connection: Connection, names: Collection[str]) -> list[str]:
    """Those of the names that no secret has, in order."""
    found = connection.execute(select(named_secrets.c.name).where(named_secrets.c.name.in_(names))).scalars()
    return sorted(set(names).difference(found))


def values_of(connection: Connection, names: Collection[str], encryption: Encryption) -> Mapping[str, str]:
    """The values of secrets; raises SecretUnavailable."""
    columns = select(named_secrets.c.name, named_secrets.c.value)
    rows = connection.execute(columns.where(named_secrets.c.name.in_(names)))
    stored = {row.name: row.value for row in rows}
    values = {}
    for name in sorted(names):
        if name not in stored:
            raise SecretUnavailable(name, is_missing=True)
        try:
            values[name] = encryption.decrypt(stored[name], place_of_secret(name))
        except CannotDecrypt:
            raise SecretUnavailable(name, is_missing=False) from None
    return values


def with_secrets(connection: Connection, target: T, encryption: Encryption) -> T:
    """The target with the values of its secrets, for calls only; itself if it needs none. Raises SecretUnavailable."""
    names = secrets_of(target)
    if not names:
        return target
    values = values_of(connection, names, encryption)
    return replace(
        target,
        url=filled_url(target.url, values),
        headers={name: filled_text(value, values) for name, value in target.headers.items()},
        initialize_url=_filled(target.initialize_url, values),
        pre_stop_url=_filled(target.pre_stop_url, values),
    )


def _filled(url: str | None, values: Mapping[str, str]) -> str | None:
    return None if url is None else filled_url(url, values)


def secrets_of(target: Target) -> set[str]:
    """The names of the secrets that calls of the target need."""
    return secrets_named_in(target.url, target.initialize_url, target.pre_stop_url, *target.headers.values())


def uses_of_secrets(connection: Connection, names: Iterable[str]) -> dict[str, list[SecretUse]]:
    """The functions that refer to each of the secrets, up to USES_MAX for each, by name."""
    uses: dict[str, list[SecretUse]] = {name: [] for name in names}
    named = functions.c.service, functions.c.function
    query = select(*named, *_REFERRING).where(or_(*map(_refers, _REFERRING))).order_by(*named)
    for service, function, *texts in connection.execute(query.execution_options(yield_per=100)):
        for name in secrets_named_in(*texts) & uses.keys():
            if len(uses[name]) < USES_MAX:
                uses[name].append(SecretUse(service, function))
    return uses


def _refers(column: ColumnElement[str | None]) -> ColumnElement[bool]:
    return column.contains(MARK, autoescape=True)


_SHOWN: Final = select(named_secrets.c.name, named_secrets.c.created_at, named_secrets.c.modified_at)
