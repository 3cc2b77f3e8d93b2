"""Many rows in one statement have the same effect as one statement for each."""

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Integer,
    MetaData,
    Table,
    Text,
    bindparam,
    delete,
    false,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from flowserver.store.sql.prepared import execute_many

things = Table(
    "things",
    MetaData(),
    Column("name", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("text", Text),
    Column("is_good", Boolean, nullable=False, server_default="0"),
    Column("version", BigInteger, server_default="0"),
)
NAMED = (things.c.name == bindparam("b_name"), things.c.number == bindparam("b_number"))
UPDATE = update(things).where(*NAMED)
DELETE = delete(things).where(things.c.name == bindparam("b_name"))


@pytest.fixture
def connection(database):
    with database.write() as connection:
        connection.exec_driver_sql(
            "CREATE TEMPORARY TABLE things (name TEXT, number INTEGER, text TEXT, is_good BOOLEAN DEFAULT FALSE,"
            " version BIGINT DEFAULT 0, PRIMARY KEY (name, number))"
        )
        execute_many(connection, insert(things), [row("a", 1, "one"), row("a", 2, None), row("b", 1, 'q"\\\n中')])
        yield connection


def row(name, number, text):
    return {"name": name, "number": number, "text": text, "is_good": number == 1}


def kept(connection):
    return {(each.name, each.number): each.text for each in connection.execute(select(things))}


def test_rows_are_inserted_exactly(connection):
    assert kept(connection) == {("a", 1): "one", ("a", 2): None, ("b", 1): 'q"\\\n中'}
    assert {bool(each.is_good) for each in connection.execute(select(things)) if each.number == 1} == {True}


def test_an_update_changes_the_named_rows_and_counts_them(connection):
    rows = [{"b_name": name, "b_number": 1, "text": f"new {name}"} for name in ("a", "b", "nobody")]
    assert execute_many(connection, UPDATE, rows) == 2
    assert kept(connection) == {("a", 1): "new a", ("a", 2): None, ("b", 1): "new b"}


def test_a_fixed_value_is_set_beside_the_rows_values(connection):
    statement = UPDATE.values(is_good=false())
    assert execute_many(connection, statement, [{"b_name": "a", "b_number": 1, "text": None}]) == 1
    assert kept(connection)[("a", 1)] is None
    good = [(each.name, each.number) for each in connection.execute(select(things)) if each.is_good]
    assert good == [("b", 1)]


def test_a_named_value_is_set_with_its_type(connection):
    statement = UPDATE.values({things.c.is_good: bindparam("good", type_=Boolean)})
    assert execute_many(connection, statement, [{"b_name": "a", "b_number": 1, "good": False, "text": None}]) == 1
    assert not connection.execute(select(things.c.is_good).where(things.c.name == "a", things.c.number == 1)).scalar()


def test_a_stored_value_is_incremented(connection):
    """A version is incremented beside the rows' values."""
    statement = UPDATE.values({things.c.version: things.c.version + literal_column("1")})
    given = [{"b_name": name, "b_number": 1, "text": "t"} for name in ("a", "b")]
    for expected in (1, 2):
        assert execute_many(connection, statement, given) == 2
        versions = {(each.name, each.number): each.version for each in connection.execute(select(things))}
        assert versions == {("a", 1): expected, ("a", 2): 0, ("b", 1): expected}


@pytest.mark.parametrize("number", [2**53 - 1, 2**53 + 1, 2**63 - 1, -(2**63), None])
def test_integers_are_exact_and_may_be_null(connection, number):
    execute_many(connection, insert(things), [{**row("c", 1, ""), "version": number}])
    assert connection.execute(select(things.c.version).where(things.c.name == "c")).scalar_one() == number
    changed = [{"b_name": "b", "b_number": 1, "version": number}]
    assert execute_many(connection, UPDATE, changed) == 1
    assert connection.execute(select(things.c.version).where(things.c.name == "b")).scalar_one() == number


def test_half_a_character_is_refused(connection):
    with pytest.raises((UnicodeEncodeError, DBAPIError)), connection.begin_nested():
        execute_many(connection, insert(things), [row("c", 1, "half \ud800")])
    assert len(kept(connection)) == 3


def test_a_delete_removes_all_named_rows(connection):
    assert execute_many(connection, DELETE, [{"b_name": "a"}, {"b_name": "nobody"}]) == 2
    assert list(kept(connection)) == [("b", 1)]


def test_existing_rows_are_replaced_where_the_statement_says_so(connection):
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    wanted = dialect.insert(things)
    statement = wanted.on_conflict_do_update(
        index_elements=[things.c.name, things.c.number], set_={"text": wanted.excluded.text}
    )
    execute_many(connection, statement, [row("a", 1, "again"), row("c", 7, "new")])
    assert kept(connection)[("a", 1)] == "again"
    assert kept(connection)[("c", 7)] == "new"


def test_errors_are_sqlalchemys_own(connection):
    with pytest.raises(IntegrityError), connection.begin_nested():
        execute_many(connection, insert(things), [row("d", 1, ""), row("a", 1, "taken")])
    if connection.dialect.name == "postgresql":
        with pytest.raises(DataError), connection.begin_nested():
            execute_many(connection, insert(things), [row("d", 1, "\0")])
    assert len(kept(connection)) == 3


def test_no_rows_need_no_statement(connection):
    assert execute_many(connection, UPDATE, []) == 0
