"""Whether a text is in a list that is one parameter, as each database likes it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from flowserver.base.json_values import dump_json


class among(FunctionElement[Any]):  # noqa: N801 # reads as SQL does, like SQLAlchemy's own functions
    """`among(column, bindparam(name))`: whether a text is in a list; `texts` gives the parameter.

    Unlike with IN, the statement is the same for lists of any length.
    """

    type = NullType()  # of a Boolean, SQLite would be asked whether it is 1
    inherit_cache = True


@compiles(among, "sqlite")
def _among_sqlite(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, listed = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({listed}))"  # noqa: S608 # compiled, not typed by anybody


@compiles(among, "postgresql")
def _among_postgres(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, listed = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY(CAST({listed} AS text[]))"


def texts(connection: Connection, listed: Sequence[str]) -> Any:
    """A list of texts as the parameter of `among`."""
    return dump_json(list(listed)) if connection.dialect.name == "sqlite" else list(listed)
