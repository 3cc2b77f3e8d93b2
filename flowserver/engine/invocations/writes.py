"""What is written of asynchronous invocations, many submissions or changes in one transaction."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import InvocationExists
from flowserver.store.invocations.changes import InvocationRow, insert_invocations, save_invocations
from flowserver.store.queues.deliveries import NewDelivery, insert_deliveries

Check = Callable[[Connection], object]
"""Looks in the transaction whether something may be submitted, and raises what stands against it."""


class Submission(msgspec.Struct, frozen=True):
    """A new invocation, and what must hold for it."""

    row: InvocationRow
    check: Check | None = None


class Change(msgspec.Struct, frozen=True):
    """An invocation as it was and as it is to be; an end may leave something to deliver."""

    before: InvocationRow
    after: InvocationRow
    delivery: NewDelivery | None = None


def insert_in(connection: Connection, submissions: Sequence[Submission]) -> list[InvocationRow | Exception]:
    """Add these as part of a transaction; for each what its key names then, or what stands against it."""
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


def save_in(connection: Connection, changes: Sequence[Change]) -> list[InvocationRow]:
    """Make these changes as part of a transaction; raises InvocationChanged if one of the invocations has changed."""
    save_invocations(connection, [(change.before, change.after) for change in changes])
    for change in changes:
        if change.delivery is not None:
            insert_deliveries(connection, [change.delivery], change.after.state.ended_at or 0)
    return [change.after for change in changes]
