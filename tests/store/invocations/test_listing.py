"""Pages of asynchronous invocations: every filter, both orders, and conditions without an index."""

from typing import Any

import pytest
from sqlalchemy import update

from flowserver.store.invocations import listing
from flowserver.store.invocations.listing import InvocationFilter, Position, list_functions_invoked, list_invocations
from flowserver.store.invocations.rows import InvocationRow, insert_invocations
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.sql.database import Database
from tests.store.rows import invocation_row


def row(key: str, created_at: int, **changes: Any) -> InvocationRow:
    return invocation_row(key, created_at=created_at, **changes)


@pytest.fixture
def rows(database: Database) -> list[InvocationRow]:
    """Five invocations of `s/f`, two of them at the same instant, and others outside the list."""
    made = [
        row("a", 1, invocation_id="x-1", payload=b"1"),
        row("b", 2, invocation_id="y-1", qualifier="prod"),
        row("c", 2, invocation_id="x-2", qualifier="LATEST"),
        row("d", 3, invocation_id="x-3", qualifier="prod"),
        row("e", 4, invocation_id="y-2"),
    ]
    with database.write() as connection:
        insert_invocations(connection, made)
        insert_invocations(connection, [row("f", 2, function="g"), row("g", 2, service="t"), row("h", 2, service="")])
    return made


def keys_of(database: Database, *, limit: int = 2, **wanted: Any) -> list[list[str]]:
    """The keys on every page."""
    chosen = InvocationFilter(service="s", function="f", **wanted)
    pages: list[list[str]] = []
    after: Position | None = None
    while True:
        with database.write() as connection:
            found, after = list_invocations(connection, chosen, after=after, limit=limit, with_payload=False)
        pages.append([each.invocation_key for each in found])
        if after is None:
            return pages


def test_newest_first_or_oldest_first(database: Database, rows: list[InvocationRow]) -> None:
    assert keys_of(database) == [["e", "d"], ["b", "c"], ["a"]]
    assert keys_of(database, oldest_first=True) == [["a", "c"], ["b", "d"], ["e"]]
    assert keys_of(database, limit=5) == [["e", "d", "b", "c", "a"]]


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"created_from": 2}, "edbc"),
        ({"created_to": 2}, "bca"),
        ({"created_from": 2, "created_to": 3}, "dbc"),
        ({"status": "Enqueued"}, "edbca"),
        ({"status": "Running"}, ""),
        ({"id_prefix": "x-"}, "dca"),
        ({"id_prefix": "x_"}, ""),
        ({"qualifiers": ("prod",)}, "db"),
        ({"qualifiers": ("", "LATEST")}, "eca"),
        ({"qualifiers": ("prod",), "id_prefix": "x-", "status": "Enqueued"}, "d"),
    ],
)
def test_filters(database: Database, rows: list[InvocationRow], wanted: dict[str, Any], keys: str) -> None:
    assert "".join("".join(page) for page in keys_of(database, **wanted)) == keys
    backwards = "".join("".join(page) for page in keys_of(database, **wanted, oldest_first=True))
    assert sorted(backwards) == sorted(keys)


def test_a_page_ends_early_where_few_match(
    database: Database, rows: list[InvocationRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SCANNED_MAX", 2)
    assert keys_of(database, id_prefix="x-") == [["d"], ["c"], ["a"]]
    assert keys_of(database, id_prefix="none") == [[], [], []]


def test_results_are_left_out_and_payloads_are_read_on_request(database: Database, rows: list[InvocationRow]) -> None:
    wanted = InvocationFilter(service="s", function="f", created_to=1)
    with database.write() as connection:
        connection.execute(update(invocations).values(result=b"r"))
        for with_payload, payload in ((True, b"1"), (False, b"")):
            [found], _ = list_invocations(connection, wanted, after=None, limit=9, with_payload=with_payload)
            assert (found.payload, found.state.result) == (payload, None)


def test_a_damaged_invocation_is_left_out(database: Database, rows: list[InvocationRow]) -> None:
    with database.write() as connection:
        connection.execute(update(invocations).where(invocations.c.invocation_key == "d").values(events="{"))
    assert keys_of(database, limit=9) == [["e", "b", "c", "a"]]


def test_functions_in_order(database: Database, rows: list[InvocationRow]) -> None:
    with database.write() as connection:
        everything = [("", "f"), ("s", "f"), ("s", "g"), ("t", "f")]
        assert list_functions_invoked(connection, after=None, limit=9) == everything
        assert list_functions_invoked(connection, after=None, limit=2) == everything[:2]
        assert list_functions_invoked(connection, after=("s", "f"), limit=9) == everything[2:]
