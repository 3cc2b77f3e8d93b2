"""Listings as text: columns that line up for people and split at blanks for shells."""

from collections.abc import Sequence
from itertools import zip_longest

from flowserver.cli.printable import printable


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Lines of left-aligned columns, two blanks apart; the first row is the heading."""
    rows = [[*map(printable, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
