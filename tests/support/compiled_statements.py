"""Lets all databases of a test process share what SQLAlchemy has compiled.

A server opens one database and compiles each statement once. Tests open thousands of databases, so without this they
spend a fifth of their processor time on compiling the same statements.
"""

from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from flowserver.store.sql import database

COMPILED: LRUCache[Any] = LRUCache(2_000)
"""One entry per statement, kind of database and set of keys."""


def share_compiled_statements() -> None:
    """Every `Database` that is opened from now on uses the shared cache. Call it once in a process."""
    for kind in (SQLiteDialect_pysqlite, PGDialect_psycopg):  # the cache has the dialect in its keys
        kind.__eq__ = lambda one, other: type(one) is type(other)  # type: ignore[method-assign,assignment]
        kind.__hash__ = lambda one: hash(type(one))  # type: ignore[method-assign,assignment]
    pytest.MonkeyPatch().setattr(database, "create_engine", _create_engine)


def _create_engine(*arguments: Any, **options: Any) -> Engine:
    engine = create_engine(*arguments, **options)
    engine.update_execution_options(compiled_cache=COMPILED)
    return engine
