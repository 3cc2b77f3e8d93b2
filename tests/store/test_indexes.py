"""Indexes that are maintained by every write of a row."""

import pytest
from sqlalchemy import Index

from flowserver.store.schema.all_tables import metadata

PARTIAL = [
    index
    for table in metadata.sorted_tables
    for index in sorted(
        table.indexes, key=lambda index: str(index.name)
    )  # a set, and each test process must list alike
    if index.dialect_options["sqlite"]["where"] is not None
]


@pytest.mark.parametrize("index", PARTIAL, ids=lambda index: str(index.name))
def test_the_condition_of_a_partial_index_has_no_list(index: Index) -> None:
    """SQLite would build the list in a temporary index at each write of a row, which costs more than the write."""
    assert " IN (" not in str(index.dialect_options["sqlite"]["where"]).upper()
