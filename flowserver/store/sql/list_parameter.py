"""`column IN (list)` with the whole list as one parameter, in the form that suits each database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from flowserver.base.json_values import dump_json


class among(FunctionElement[Any]):  # noqa: N801 # reads as SQL does, like SQLAlchemy's own functions
    """`among(column, bindparam(name))`: whether a text is in a list; `texts` makes the parameter.

    Unlike IN, the statement is the same for lists of any length, so it is compiled once.
    """

    type = NullType()  # with Boolean, SQLAlchemy appends "= 1" for SQLite
    inherit_cache = True


@compiles(among, "sqlite")
def _among_sqlite(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, listed = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({listed}))"  # noqa: S608 # compiled SQL, no user input


@compiles(among, "postgresql")
def _among_postgres(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, listed = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY(CAST({listed} AS text[]))"


class among_pairs(FunctionElement[Any]):  # noqa: N801 # like `among`
    """`among_pairs(column, other, bindparam(name))`: `among` for two columns together; `pairs` makes the parameter."""

    type = NullType()
    inherit_cache = True


@compiles(among_pairs, "sqlite")
def _among_pairs_sqlite(element: among_pairs, compiler: SQLCompiler, **options: Any) -> str:
    first, second, listed = (compiler.process(clause, **options) for clause in element.clauses)
    pair = "json_extract(value, '$[0]'), json_extract(value, '$[1]')"
    return f"({first}, {second}) IN (SELECT {pair} FROM json_each({listed}))"  # noqa: S608 # as above


@compiles(among_pairs, "postgresql")
def _among_pairs_postgres(element: among_pairs, compiler: SQLCompiler, **options: Any) -> str:
    first, second, listed = (compiler.process(clause, **options) for clause in element.clauses)
    pairs = f"json_array_elements(CAST({listed} AS json)) AS pair"
    return f"({first}, {second}) IN (SELECT pair ->> 0, pair ->> 1 FROM {pairs})"  # noqa: S608 # as above


def texts(connection: Connection, listed: Sequence[str]) -> Any:
    """A list of texts as the parameter of `among`."""
    return dump_json(list(listed)) if connection.dialect.name == "sqlite" else list(listed)


def pairs(listed: Sequence[tuple[str, str]]) -> str:
    """A list of pairs of texts as the parameter of `among_pairs`."""
    return dump_json(list(listed))
