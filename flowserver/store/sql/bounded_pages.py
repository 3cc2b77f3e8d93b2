"""Pages with a limit in bytes: rows are read a few at a time until the page is full."""

import logging
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Row, Select

from flowserver.store.sql.unreadable import is_text, legible

log = logging.getLogger(__name__)

ROWS_AT_ONCE = 8
"""Rows read at a time; a row has at most three documents of 256 KiB."""


def read_page(
    connection: Connection, query: Select[Any], limit: int, bytes_max: int, *names: str
) -> tuple[list[Row[Any]], Row[Any] | None]:
    """The first rows of an ordered query, and the row that the next page begins with; None after the last.

    A page has at most `limit` rows and `bytes_max` bytes of text, but always the first row. A row in which one of the
    columns `names` is not valid text is left out and logged: no request and no cursor could name it.
    """
    asked = limit + 1
    while True:
        page: list[Row[Any]] = []
        bytes_left, count = bytes_max, 0
        with connection.execute(query.limit(asked).execution_options(yield_per=ROWS_AT_ONCE)) as rows:
            for row in rows:
                count += 1
                if not all(is_text(getattr(row, name)) for name in names):
                    log.warning("a damaged row is left out of a list: %s", [legible(value) for value in row[:3]])
                    continue
                bytes_left -= bytes_of(row)
                if len(page) == limit or (page and bytes_left < 0):
                    return page, row
                page.append(row)
        if count < asked:
            return page, None
        asked *= 2  # some were left out


def bytes_of(values: Iterable[Any]) -> int:
    """How many bytes the texts among the values hold."""
    return sum(len(value.encode("utf-8", "surrogatepass")) for value in values if isinstance(value, str))
