"""The keys of task tokens: every server knows a key before any server uses it."""

import pytest

from flowserver.base.encryption import CannotDecrypt, Encryption, new_key
from flowserver.base.task_tokens import TaskTokens
from flowserver.store.sql.database import Database
from flowserver.store.task_token_keys import Step, change_task_token_keys, read_task_token_keys


def tokens(database: Database, encryption: Encryption) -> TaskTokens:
    """What a server that starts now makes and reads."""
    with database.write() as connection:
        first, *further = read_task_token_keys(connection, encryption)
    return TaskTokens(first, further=further)


@pytest.mark.parametrize("keys", [[], [new_key()]], ids=["clear", "encrypted"])
def test_servers_before_and_after_a_step_read_each_others_tokens(database: Database, keys: list[str]) -> None:
    encryption = Encryption(keys)
    servers = [tokens(database, encryption)]
    for step, count in ((Step.ADD, 2), (Step.USE, 2), (Step.DROP, 1)):
        with database.write() as connection:
            assert change_task_token_keys(connection, encryption, step) == count
        servers.append(tokens(database, encryption))
    made = [server.make("e", 1, 2, 3) for server in servers]
    assert made[0] == made[1] != made[2] == made[3]
    for before, after in ((0, 1), (1, 2), (2, 3)):
        assert servers[before].read(made[after]) == servers[after].read(made[after]) is not None
        if after < 3:
            assert servers[after].read(made[before]) is not None
    assert servers[3].read(made[0]) is None
    assert servers[0].read(made[3]) is None


def test_encrypted_keys_are_not_replaced_without_their_key(database: Database) -> None:
    tokens(database, Encryption([new_key()]))
    with database.write() as connection, pytest.raises(CannotDecrypt):
        change_task_token_keys(connection, Encryption(), Step.DROP)
