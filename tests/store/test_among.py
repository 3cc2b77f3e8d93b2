"""Lists of texts as one parameter: of any length and any texts, and found by the key's index."""

from typing import Any

import pytest
from sqlalchemy import Connection, bindparam, insert, select

from flowserver.store.among import among, texts
from flowserver.store.census import parked_among, pausing_scopes
from flowserver.store.database import Database
from flowserver.store.direct import fetch_all
from flowserver.store.flows import find_flows
from flowserver.store.loading import load_executions, lock_versions
from flowserver.store.tables import secrets
from tests.store.plans import plan_of

ODD = ["", "it's", '"', '"], "x', "\\", "{a,b}", "NULL", "null", "%s", "?", ":names", "中", "a\nb"]
FIND = select(secrets.c.name).where(among(secrets.c.name, bindparam("names")))


def found(connection: Connection, *names: str) -> list[str]:
    return sorted(name for (name,) in fetch_all(connection, FIND, {"names": texts(connection, names)}))


@pytest.fixture
def kept(database: Database) -> Database:
    with database.write() as connection:
        connection.execute(insert(secrets), [{"name": name, "value": ""} for name in [*ODD, "a", "b"]])
    return database


def test_those_that_are_listed_are_found(kept: Database) -> None:
    with kept.read() as connection:
        assert found(connection) == []
        assert found(connection, "a") == ["a"]
        assert found(connection, "nobody", "a", "a", "b", "ab") == ["a", "b"]
        assert found(connection, *map(str, range(1_000))) == []
        assert found(connection, *map(str, range(1_000)), "b") == ["b"]


def test_texts_are_taken_as_they_are(kept: Database) -> None:
    with kept.read() as connection:
        assert found(connection, *ODD) == sorted(ODD)
        assert [found(connection, name) for name in ODD] == [[name] for name in ODD]


LISTED = {
    "secrets": lambda c: found(c, "a", "b"),
    "load_executions": lambda c: load_executions(c, ["a", "b"]),
    "lock_versions": lambda c: lock_versions(c, ["a", "b"]),
    "find_flows": lambda c: find_flows(c, ["a", "b"]),
    "parked_among": lambda c: parked_among(c, ["a", "b"]),
    "pausing_scopes": lambda c: pausing_scopes(c, ["a", "b"]),
}


@pytest.mark.parametrize("name", LISTED)
def test_lists_go_by_an_index(database: Database, name: str) -> None:
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
