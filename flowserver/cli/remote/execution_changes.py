"""Changes of several executions, one after the other."""

from collections.abc import Callable, Sequence

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.failures import CommandFailed
from flowserver.cli.printable import printable
from flowserver.cli.remote.session import Session
from flowserver.client.errors import Refused
from flowserver.client.results import Execution

Tolerated = Callable[[Refused], bool]


def change_all(
    session: Session,
    chosen: Sequence[tuple[str, str]],
    change: Callable[[str, str], Execution],
    verb: str,
    *,
    tolerated: Tolerated = lambda *_: False,
    summary: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """Change one after the other, and print each as soon as it is done.

    What the server refuses for one of several does not keep it from the others; raises the last refusal in the end,
    except those that are `tolerated`. `summary` gets how many were changed and how many others were refused, before.
    """
    failures = 0
    changed: list[Execution] = []
    refusal: Refused | CommandFailed | None = None
    for flow, name in chosen:
        session.asked_flow, session.asked_name = flow, name
        try:
            changed.append(change(flow, name))
        except (Refused, CommandFailed) as error:
            if isinstance(error, Refused) and tolerated(error):
                continue
            failures += 1
            if refusal is not None:
                typer.echo(printable(f"flowserver: {refusal}"), err=True)
            refusal = error
        else:
            if session.output not in ("json", "yaml"):
                typer.echo(f"{flow}/{name}" if session.output == "name" else f"{verb} {flow}/{name}")
    if session.output in ("json", "yaml") and (changed or refusal is None):
        show_document(session.output, [each.document for each in changed])
    summary(len(changed), failures)
    if refusal is not None:
        raise refusal
