"""Submissions of asynchronous invocations: what is submitted, and many of them inserted in one transaction."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from flowserver.base.errors import InvocationExists
from flowserver.machine.invocations.states import InvocationState
from flowserver.store.invocations.rows import InvocationRow, insert_invocations


class NewInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """An invocation to submit. `service` is "" for a function without one; `qualifier` is "" for none."""

    service: str
    qualifier: str
    function: str
    payload: bytes
    invocation_key: str
    """Identifies the submission: submitting again with the same key returns the first invocation."""
    request_id: str
    invocation_id: str | None = None
    """The caller's id for it; the request id by default."""
    execution_id: str | None = None
    flow_name: str = ""
    execution_name: str = ""
    step_name: str = ""
    callback_token: str | None = None
    """The token of the task that waits for the result."""
    traceparent: str | None = None
    """The span that submits it, if that is traced."""

    @property
    def called(self) -> tuple[str, str, str]:
        """The function's key in the registry."""
        return self.service, self.qualifier, self.function

    def row(self, holder: str, state: InvocationState) -> InvocationRow:
        """Its row; `holder` is the node that makes its calls."""
        return InvocationRow(
            invocation_key=self.invocation_key,
            service=self.service,
            qualifier=self.qualifier,
            function=self.function,
            invocation_id=self.invocation_id or self.request_id,
            request_id=self.request_id,
            node_id=holder,
            state=state,
            payload=self.payload,
            execution_id=self.execution_id,
            flow_name=self.flow_name,
            execution_name=self.execution_name,
            step_name=self.step_name,
            callback_token=self.callback_token,
            traceparent=self.traceparent,
        )


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
