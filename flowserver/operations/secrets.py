"""Secrets that functions' URLs and headers refer to. Their values are written only: no operation returns one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from flowserver.base.encryption import NoKey
from flowserver.base.errors import FlowServerError, InvalidArgument, ResourceThrottled
from flowserver.base.names import NAME_RULE, is_name
from flowserver.engine.engine import Engine
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.pages import Page, check_limit
from flowserver.store.named_secrets import (
    SecretRow,
    SecretUse,
    count_secrets,
    delete_secret,
    find_secret,
    list_secrets,
    place_of_secret,
    put_secret,
    uses_of_secrets,
)

KEY_MISSING: Final = (
    "this server has no key to encrypt secrets with: make one with `flowserver secrets new-key`, give it to the server "
    "as FLOWSERVER_SECRETS_KEY or in the file of the setting secrets_key_file, and restart the server"
)

_VALUE: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?\Z")


class SecretNotExists(FlowServerError):
    """There is no secret of this name."""

    code = "SecretNotExists"
    status = 404


class SecretInUse(FlowServerError):
    """A function refers to the secret."""

    code = "SecretInUse"
    status = 409


class SecretsKeyMissing(FlowServerError):
    """The server has no key to encrypt secrets with."""

    code = "SecretsKeyMissing"
    status = 409


@dataclass(frozen=True, slots=True)
class ShownSecret:
    """A secret without its value, and what refers to it."""

    row: SecretRow
    uses: Sequence[SecretUse]


class SecretOperations:
    """Operations on secrets."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    @audited("secrets.put", "secrets/{name}")
    async def put(self, name: str, value: str) -> tuple[ShownSecret, bool]:
        """Create or replace a secret; returns it and whether it is new. Calls use the new value within a second.

        Raises InvalidArgument, SecretsKeyMissing, and ResourceThrottled if there are too many.
        """
        limits = self._engine.limits
        if not is_name(name):
            raise InvalidArgument(f"the secret {NAME_RULE}")
        if len(value) > limits.secret_bytes_max or not _VALUE.match(value):
            raise InvalidArgument(
                f"the value must be 1 to {limits.secret_bytes_max:,} printable ASCII characters, without line breaks "
                "and without blanks at its ends"
            )
        try:
            encrypted = self._engine.encryption.encrypt(value, place_of_secret(name))
        except NoKey:
            raise SecretsKeyMissing(KEY_MISSING) from None
        now_ms = self._engine.clock.now_ms()

        def write(connection: Connection, was_new: bool | None) -> bool:
            is_new = put_secret(connection, name, encrypted, now_ms)
            if is_new and count_secrets(connection) > limits.secrets_max:
                raise ResourceThrottled(f"the server has {limits.secrets_max:,} secrets already")
            return is_new or bool(was_new)

        is_new = await self._engine.committer.write_once(write, by_caller=True)
        self._engine.functions_changed()
        return await self.describe(name), is_new

    async def describe(self, name: str) -> ShownSecret:
        """The secret; raises SecretNotExists."""
        shown = await self._engine.reader.ask(partial(_describe, name=name), by_caller=True)
        if shown is None:
            raise _not_there(name)
        return shown

    async def list(self, *, next_token: str | None, limit: int | None) -> Page[ShownSecret]:
        """Secrets by name; the token is the last name of the previous page."""
        size = check_limit(limit, self._engine.limits.page_max)
        shown = await self._engine.slow_reads.ask(partial(_list, after=next_token or "", limit=size + 1))
        return Page(shown[:size], shown[size - 1].row.name if len(shown) > size else None)

    @audited("secrets.delete", "secrets/{name}")
    async def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a secret; raises SecretNotExists, and SecretInUse unless forced: then calls that need it fail."""

        def write(connection: Connection, was_there: bool | None) -> bool:
            uses = [] if force else uses_of_secrets(connection, [name])[name]
            if not delete_secret(connection, name):
                return bool(was_there)
            if uses:
                raise SecretInUse(f"{_listed(uses)} to the secret {name}; force the deletion, and calls of it fail")
            return True

        deleted = await self._engine.committer.write_once(write, by_caller=True)
        self._engine.functions_changed()
        if not deleted:
            raise _not_there(name)


def _describe(connection: Connection, name: str) -> ShownSecret | None:
    row = find_secret(connection, name)
    return None if row is None else ShownSecret(row, uses_of_secrets(connection, [name])[name])


def _list(connection: Connection, after: str, limit: int) -> list[ShownSecret]:
    rows = list_secrets(connection, after, limit)
    uses = uses_of_secrets(connection, [row.name for row in rows])
    return [ShownSecret(row, uses[row.name]) for row in rows]


def _listed(uses: Sequence[SecretUse]) -> str:
    named = f"the function {uses[0].service or '-'}/{uses[0].function}"
    return f"{named} refers" if len(uses) == 1 else f"{named} and {len(uses) - 1} more refer"


def _not_there(name: str) -> SecretNotExists:
    return SecretNotExists(f"there is no secret {name}")
