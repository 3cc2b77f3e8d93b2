"""Results on stdout: a table for people, or one document for programs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.printable import printable
from flowserver.cli.remote.session import Session
from flowserver.cli.tables import aligned
from flowserver.client.results import Result

R = TypeVar("R", bound=Result)

Columns = Mapping[str, Callable[[R], str]]


def show_list(
    session: Session, items: Iterable[R], columns: Columns[R], name: Callable[[R], str], none_found: str, limit: int
) -> None:
    """Print a list, or its first `limit` items and a note that there are more.

    An empty list is an empty document, or a note.
    """
    found = list(islice(items, limit + 1))
    has_more = len(found) > limit
    del found[limit:]
    match session.output:
        case "table" if found:
            rows = [[show(each) for show in columns.values()] for each in found]
            typer.echo(aligned([list(columns), *rows]))
        case "table":
            session.note(none_found)
        case "name":
            show_names(map(name, found))
        case _:
            show_document(session.output, [each.document for each in found])
    if has_more:
        session.note(more_than(limit))


def more_than(limit: int) -> str:
    """What to say of a list that was cut."""
    return f"There are more than {limit}: use --limit, or narrow the search."


def show_names(names: Iterable[str]) -> None:
    """Print names, one a line."""
    for name in names:
        typer.echo(name)


def show_one(session: Session, found: R, name: str, text: str) -> None:
    """Print one object; `text` is what people see."""
    match session.output:
        case "table":
            typer.echo(printable(text))
        case "name":
            typer.echo(name)
        case _:
            show_document(session.output, found.document)


def show_change(session: Session, change: str, names: str | Sequence[str], said: str | None = None) -> None:
    """Print what was done to what is named; `said` is what people see, if it is not `CHANGE NAME`.

    Programs get an object with `name` and `change`, or a list of them.
    """
    all_names = [names] if isinstance(names, str) else names
    if session.output == "table":
        show_names([said] if said else [f"{change} {name}" for name in all_names])
    elif session.output == "name":
        show_names(all_names)
    else:
        done = [{"name": name, "change": change} for name in all_names]
        show_document(session.output, done[0] if isinstance(names, str) else done)


def one_line(text: str, characters_max: int) -> str:
    """The text without line breaks and not longer than this."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= characters_max else f"{flat[: characters_max - 1]}…"
