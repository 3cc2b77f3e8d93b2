"""The keys that authenticate task tokens: one row of `secrets`, which holds them in their order, perhaps encrypted.

The first key makes tokens, all of them read tokens. Servers read the row when they start. So a key is replaced in
three steps, with a restart of every server between them: `add` a key that servers read, `use` it for new tokens, and
`drop` the others once the tasks whose tokens they made are over. No server ever meets a token that it does not know.
"""

import secrets as random
from enum import StrEnum

from sqlalchemy import Connection, update

from flowserver.base.encryption import Encryption
from flowserver.store.access_keys import keep_secret
from flowserver.store.encrypted_values import TASK_TOKEN_KEYS, place_of
from flowserver.store.schema.tables import secrets

KEY_BYTES = 32
PLACE = place_of(secrets, TASK_TOKEN_KEYS)


class Step(StrEnum):
    """A step of a replacement."""

    ADD = "add"
    """Add a key behind the others."""
    USE = "use"
    """Put the last key first."""
    DROP = "drop"
    """Keep the first key alone."""


def read_task_token_keys(connection: Connection, encryption: Encryption) -> list[bytes]:
    """The keys, the first one for new tokens; one is made if there is none. Raises CannotDecrypt."""
    fresh = encryption.protect(random.token_hex(KEY_BYTES), PLACE)
    stored = keep_secret(connection, TASK_TOKEN_KEYS, fresh)
    return [bytes.fromhex(each) for each in encryption.reveal(stored, PLACE).split(",")]


def change_task_token_keys(connection: Connection, encryption: Encryption, step: Step) -> int:
    """Take a step; returns how many keys there are. Raises CannotDecrypt."""
    keys = read_task_token_keys(connection, encryption)
    if step is Step.ADD:
        keys = [*keys, random.token_bytes(KEY_BYTES)]
    elif step is Step.USE:
        keys = [keys[-1], *keys[:-1]]
    else:
        keys = keys[:1]
    text = encryption.protect(",".join(key.hex() for key in keys), PLACE)
    connection.execute(update(secrets).where(secrets.c.name == TASK_TOKEN_KEYS).values(value=text))
    return len(keys)
