"""Writes of asynchronous invocations: many submissions or changes in one transaction."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import InvocationExists
from flowserver.store.invocations.row_changes import RowChange
from flowserver.store.invocations.rows import InvocationRow, insert_invocations, save_invocations
from flowserver.store.queues.deliveries import insert_deliveries

Check = Callable[[Connection], object]
"""Checks in the transaction whether an invocation may be submitted, and raises an error if not."""


class Submission(msgspec.Struct, frozen=True):
    """A new invocation, and the check that it must pass."""

    row: InvocationRow
    check: Check | None = None


def insert_in(connection: Connection, submissions: Sequence[Submission]) -> list[InvocationRow | Exception]:
    """Insert these in the transaction; returns for each the row with its key, or the error that prevented it."""
    answers: list[Any] = [_objection(connection, each) for each in submissions]
    rows = [each.row for each, objection in zip(submissions, answers, strict=True) if objection is None]
    inserted = iter(insert_invocations(connection, rows))
    for number, each in enumerate(submissions):
        if answers[number] is None:
            answers[number] = next(inserted) or _exists(each.row)
    return answers


def _objection(connection: Connection, submission: Submission) -> Exception | None:
    try:
        if submission.check is not None:
            submission.check(connection)
    except SQLAlchemyError:
        raise
    except Exception as error:
        return error
    return None


def _exists(row: InvocationRow) -> InvocationExists:
    return InvocationExists(f"function '{row.function}' has an invocation '{row.invocation_id}' already")


def save_in(connection: Connection, changes: Sequence[RowChange]) -> list[InvocationRow]:
    """Save these changes in the transaction; raises InvocationChanged if one of the invocations has changed."""
    save_invocations(connection, [(change.before, change.after) for change in changes])
    for change in changes:
        if change.delivery is not None:
            insert_deliveries(connection, [change.delivery], change.after.state.ended_at or 0)
    return [change.after for change in changes]
