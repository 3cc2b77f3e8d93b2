"""Differences between two texts, for people."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.printable import printable
from flowserver.cli.remote.session import Session

_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


def diff_of(before: str, after: str, before_name: str, after_name: str) -> list[str]:
    """The lines of a unified diff; none if the texts differ in line ends only."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), before_name, after_name, lineterm="")
    return list(lines)


def end_with_diff(session: Session, compared: Mapping[str, str], lines: Sequence[str]) -> None:
    """Show the lines, or a document of what was compared and the diff; raises typer.Exit if there are any."""
    if session.output == "table":
        show_diff(session, lines)
    else:
        show_document(session.output, {**compared, "differs": bool(lines), "diff": "\n".join(lines)})
    if lines:
        raise typer.Exit(ExitCode.FAILED)


def show_diff(session: Session, lines: Iterable[str]) -> None:
    """Print the lines, in colours on a terminal."""
    for line in lines:
        typer.echo(session.coloured(printable(line), _COLOURS.get(line[:1], "")))
