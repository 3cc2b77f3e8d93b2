"""Turns a statement for one row into one for many rows on PostgreSQL: all rows are one JSON parameter.

PostgreSQL then plans and runs one statement, and the driver sends one message, for any number of rows. Arrays, one for
each column, would be slower: the driver writes them in Python, value by value.
"""

from functools import lru_cache
from typing import Any, cast

from sqlalchemy import JSON, BindParameter, Insert, Update, bindparam, column, func, select
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.visitors import iterate, replacement_traverse

ROWS = "given_rows"
"""The name of the parameter."""


@lru_cache(maxsize=64)
def over_recordset(statement: UpdateBase, keys: tuple[str, ...]) -> UpdateBase:
    """The statement for all rows of the parameter `ROWS`, the JSON text of a list of objects with these keys.

    Works for INSERT, with or without ON CONFLICT, and for UPDATE and DELETE whose conditions use named parameters. The
    effect is that of executing row by row if all rows have the same keys (a missing key would be NULL, not an error)
    and name different rows of the table (only one of two would count).
    """
    named = {each.key: each for each in iterate(statement) if isinstance(each, BindParameter) and each.key in keys}
    columns = {each.name: each for each in statement.table.c}
    typed = [column(key, (named[key] if key in named else columns[key]).type) for key in keys]
    row = func.json_to_recordset(bindparam(ROWS, type_=JSON)).table_valued(*typed, name="given")
    row = row.render_derived(with_types=True)
    if isinstance(statement, Insert):
        return statement.from_select(list(keys), select(*(row.c[key] for key in keys)))

    def in_row(element: Any, **_: Any) -> Any:
        return row.c[element.key] if isinstance(element, BindParameter) and element.key in named else None

    if isinstance(statement, Update):
        statement = statement.values({columns[key]: row.c[key] for key in keys if key not in named})
    return cast(UpdateBase, replacement_traverse(statement, {}, in_row))
