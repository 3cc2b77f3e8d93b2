"""Differences between two texts, for people."""

import difflib
from collections.abc import Iterable
from typing import Final

import typer

from flowserver.cli.remote.session import Session

_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


def diff_of(before: str, after: str, before_name: str, after_name: str) -> list[str]:
    """The lines of a unified diff; none if the texts differ in line ends only."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), before_name, after_name, lineterm="")
    return list(lines)


def show_diff(session: Session, lines: Iterable[str]) -> None:
    """Print the lines, in colours on a terminal."""
    for line in lines:
        typer.echo(session.coloured(line, _COLOURS.get(line[:1], "")))
