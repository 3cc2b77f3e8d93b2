"""Lists of texts as one parameter: of any length and any texts, and found by the key's index."""

from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, insert, select

from flowserver.store.executions.loading import load_executions, lock_versions
from flowserver.store.executions.lookups import find_names, find_statuses
from flowserver.store.flows import find_flows
from flowserver.store.functions import put_function
from flowserver.store.integrity.stuck_executions import parked_among, pausing_scopes
from flowserver.store.schema.tables import functions, secrets
from flowserver.store.sql.database import Database
from flowserver.store.sql.list_parameter import among, among_pairs, pairs, texts
from flowserver.store.sql.prepared import fetch_all
from tests.store.plans import plan_of
from tests.store.rows import function_row

ODD = ["", "it's", '"', '"], "x', "\\", "{a,b}", "NULL", "null", "%s", "?", ":names", "中", "a\nb"]
FIND = select(secrets.c.name).where(among(secrets.c.name, bindparam("names")))


def found(connection: Connection, *names: str) -> list[str]:
    return sorted(name for (name,) in fetch_all(connection, FIND, {"names": texts(connection, names)}))


@pytest.fixture
def kept(database: Database) -> Database:
    with database.write() as connection:
        connection.execute(insert(secrets), [{"name": name, "value": ""} for name in [*ODD, "a", "b"]])
    return database


def test_listed_rows_are_found(kept: Database) -> None:
    with kept.read() as connection:
        assert found(connection) == []
        assert found(connection, "a") == ["a"]
        assert found(connection, "nobody", "a", "a", "b", "ab") == ["a", "b"]
        assert found(connection, *map(str, range(1_000))) == []
        assert found(connection, *map(str, range(1_000)), "b") == ["b"]


def test_texts_are_compared_exactly(kept: Database) -> None:
    with kept.read() as connection:
        assert found(connection, *ODD) == sorted(ODD)
        assert [found(connection, name) for name in ODD] == [[name] for name in ODD]


@pytest.fixture
def functions_kept(database: Database) -> Database:
    """A row for every pair of odd names."""
    with database.write() as connection:
        for service, function in product(ODD, ODD):
            put_function(connection, function_row(service, function))
    return database


FIND_PAIRS = select(functions.c.service, functions.c.function).where(
    among_pairs(functions.c.service, functions.c.function, bindparam("asked"))
)


def test_pairs_are_compared_exactly(functions_kept: Database) -> None:
    with functions_kept.read() as connection:

        def found_pairs(*asked: tuple[str, str]) -> list[tuple[str, str]]:
            return sorted(fetch_all(connection, FIND_PAIRS, {"asked": pairs(asked)}))

        every = sorted(product(ODD, ODD))
        assert found_pairs() == []
        assert found_pairs(("it's", "nobody"), ("nobody", "中"), ("it's", "中"), ("it's", "中")) == [("it's", "中")]
        assert found_pairs(*every) == every
        assert [found_pairs(pair) for pair in every] == [[pair] for pair in every]


LISTED = {
    "secrets": lambda c: found(c, "a", "b"),
    "load_executions": lambda c: load_executions(c, ["a", "b"]),
    "lock_versions": lambda c: lock_versions(c, ["a", "b"]),
    "find_flows": lambda c: find_flows(c, ["a", "b"]),
    "parked_among": lambda c: parked_among(c, ["a", "b"]),
    "find_names": lambda c: find_names(c, [("a", "b"), ("a", "c")]),
    "find_statuses": lambda c: find_statuses(c, ["a", "b"]),
    "pausing_scopes": lambda c: pausing_scopes(c, ["a", "b"]),
}


@pytest.mark.parametrize("name", LISTED)
def test_lists_use_an_index(database: Database, name: str) -> None:
    query: Any = LISTED[name]
    with database.write() as connection:
        plan = plan_of(connection, query)
    if database.is_sqlite:
        searches = [line for line in plan if line.startswith("SEARCH ")]
        scans = [line for line in plan if line.startswith("SCAN ") and "json_each" not in line]
    else:
        searches = [line for line in plan if "Index" in line]
        scans = [line for line in plan if "Seq Scan" in line]
    assert searches, plan
    assert scans == []
