"""Configurations of asynchronous invocations as they are stored."""

from dataclasses import replace

from sqlalchemy import update

from flowserver.store.invocations.async_configs import (
    AsyncConfigRow,
    delete_async_config,
    find_async_config,
    list_async_configs,
    put_async_config,
)
from flowserver.store.schema.tables import async_configs
from flowserver.store.sql.database import Database

CONFIG = AsyncConfigRow(
    service="s", function="f", qualifier="", document={"maxAsyncRetryAttempts": 1}, created_at=1, modified_at=1
)


def test_put_find_replace_delete(database: Database) -> None:
    with database.write() as connection:
        assert put_async_config(connection, CONFIG) == CONFIG
        again = replace(CONFIG, document={}, created_at=2, modified_at=2)
        kept = replace(again, created_at=1)
        assert put_async_config(connection, again) == kept
        assert find_async_config(connection, "s", "f", "") == kept
        for other in (("s", "f", "prod"), ("s", "g", ""), ("t", "f", "")):
            assert find_async_config(connection, *other) is None
            assert not delete_async_config(connection, *other)
        assert delete_async_config(connection, "s", "f", "")
        assert find_async_config(connection, "s", "f", "") is None


def test_list_by_qualifier_from_a_start(database: Database) -> None:
    rows = [replace(CONFIG, qualifier=qualifier) for qualifier in ("", "3", "LATEST", "prod")]
    with database.write() as connection:
        for row in (*reversed(rows), replace(CONFIG, function="g"), replace(CONFIG, service="t")):
            put_async_config(connection, row)
        assert list_async_configs(connection, "s", "f", from_qualifier="", limit=9, bytes_max=9_999) == (rows, None)
        assert list_async_configs(connection, "s", "f", from_qualifier="3", limit=2, bytes_max=9_999) == (
            rows[1:3],
            "prod",
        )


def test_a_damaged_configuration_counts_as_empty(database: Database) -> None:
    with database.write() as connection:
        put_async_config(connection, CONFIG)
        for damaged in ("{", "[]"):
            connection.execute(update(async_configs).values(document=damaged))
            assert find_async_config(connection, "s", "f", "") == replace(CONFIG, document={})
