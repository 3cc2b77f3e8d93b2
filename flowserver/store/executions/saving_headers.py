"""Saves the headers of executions, fenced by version, and their documents.

Of the indexed columns of a header, all but `waiting_steps` are written only at the end, or when the execution is
redriven.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, literal_column, update

from flowserver.base.json_values import dump_json
from flowserver.machine.state import Execution
from flowserver.store.executions.kept_scopes import redriven_columns
from flowserver.store.executions.stored_execution import StoredExecution
from flowserver.store.schema.tables import execution_documents, executions
from flowserver.store.sql.errors import was_refused
from flowserver.store.sql.prepared import write_later
from flowserver.store.sql.unreadable import storable


class VersionConflict(Exception):
    """Another node committed a turn of this execution since it was loaded; reload and try again."""


def was_rolled_back(error: Exception) -> bool:
    """Whether it is known that the transaction that ended with this error committed nothing."""
    return isinstance(error, VersionConflict) or was_refused(error)


def save_headers(
    connection: Connection,
    new: Sequence[StoredExecution],
    old: Sequence[StoredExecution],
    redriven: Sequence[StoredExecution],
    results: Sequence[Execution],
) -> None:
    """Insert new executions, update old ones and those that were redriven; write the `results` of some, once each.

    Raises VersionConflict if another node has changed any of them, on PostgreSQL as late as with the COMMIT.
    """
    write_later(connection, _INSERT_HEADER, [_new_header(stored) for stored in new if stored.parent is None])
    children = [_new_header(stored) | stored.parent._asdict() for stored in new if stored.parent is not None]
    write_later(connection, _INSERT_HEADER, children)
    write_later(connection, _INSERT_DOCUMENTS, [_new_documents(stored) for stored in new])
    for rows in _updates(old):
        write_later(connection, _UPDATE_HEADER, rows, unless_all_change=VersionConflict)
    headers = [_key(each) | _progress(each.execution) | redriven_columns(each) for each in redriven]
    write_later(connection, _UPDATE_HEADER, headers, unless_all_change=VersionConflict)
    write_later(connection, _UPDATE_DOCUMENTS, [{"b_id": each.execution_id, **_results(each)} for each in results])
    tokens = [{"b_id": each.execution.execution_id, "redrive_token": each.redrive_token} for each in redriven]
    write_later(connection, _UPDATE_DOCUMENTS, tokens)


def _updates(stored: Sequence[StoredExecution]) -> Iterator[list[dict[str, Any]]]:
    """The changed columns of headers, in lists of rows with the same columns."""
    groups: tuple[list[dict[str, Any]], ...] = ([], [], [], [])
    for each in stored:
        execution = each.execution
        row = _key(each) | (_counts(execution) if execution.is_running else _progress(execution))
        if execution.waiting_steps is not None:
            row["waiting_steps"] = execution.waiting_steps
        groups[2 * execution.is_running + (execution.waiting_steps is None)].append(row)
    yield from groups


_INSERT_HEADER = insert(executions)
_INSERT_DOCUMENTS = insert(execution_documents)
_UPDATE_HEADER = (
    update(executions)
    .where(executions.c.execution_id == bindparam("b_id"), executions.c.version == bindparam("b_version"))
    .values({executions.c.version: literal_column("version + 1")})
)
_UPDATE_DOCUMENTS = update(execution_documents).where(execution_documents.c.execution_id == bindparam("b_id"))


def _key(stored: StoredExecution) -> dict[str, Any]:
    return {"b_id": stored.execution.execution_id, "b_version": stored.version}


def _counts(execution: Execution) -> dict[str, Any]:
    """The header columns that most turns change; no index contains them."""
    return {
        "next_event_id": execution.next_event_id,
        "next_scope_id": execution.next_scope_id,
        "next_wait_id": execution.next_wait_id,
        "document_bytes": execution.document_bytes,
    }


def _progress(execution: Execution) -> dict[str, Any]:
    return _counts(execution) | {
        "status": str(execution.status),
        "stopped_at": execution.stopped_at,
        "callback_due": execution.callback_token is not None and not execution.is_running,
        "document_bytes": execution.document_bytes or execution.kept_bytes,
    }


def _new_header(stored: StoredExecution) -> dict[str, Any]:
    execution = stored.execution
    return _progress(execution) | {
        "execution_id": execution.execution_id,
        "flow_id": stored.flow_id,
        "flow_name": execution.flow_name,
        "name": execution.name,
        "definition_id": stored.definition_id,
        "version": 1,
        "started_at": execution.started_at,
        "deadline_at": execution.deadline_at,
        "callback_token": execution.callback_token,
        "flow_version": stored.flow_version,
        "flow_alias": stored.flow_alias,
        "waiting_steps": execution.waiting_steps,
    }


def _new_documents(stored: StoredExecution) -> dict[str, Any]:
    key = {"execution_id": stored.execution.execution_id, "input": stored.input_text}
    return key | _results(stored.execution)


def _results(execution: Execution) -> dict[str, Any]:
    output = None if execution.output is None else dump_json(execution.output)
    error, cause = storable(execution.error), storable(execution.cause)
    return {"output": output, "error": error, "cause": cause, "failed_step": execution.failed_step}
