"""The name under which a sub-flow is started again: NAME-2, NAME-3 … beside the earlier executions of its parent."""

from collections.abc import Container

from sqlalchemy import Connection, bindparam, select

from flowserver.base.names import further_names, name_with_id
from flowserver.machine.state import Status
from flowserver.store.executions.loading import likely_status
from flowserver.store.executions.lookups import find_names
from flowserver.store.executions.new_executions import NewExecution, StartingStep
from flowserver.store.schema.tables import executions
from flowserver.store.sql.prepared import fetch_rows


def further_name(
    connection: Connection,
    flow_id: str,
    new: NewExecution,
    holder_id: str,
    *,
    also_taken: Container[tuple[str, str]] = (),
) -> str | None:
    """The name that a start gets whose name another execution, the holder, has; None if it keeps its name.

    It gets another one if it is a further attempt, or its parent was redriven, and the holder is an earlier execution
    of the same parent. `also_taken` are pairs of flow id and name.
    """
    step = new.parent
    if step is None or not step.numbers_names or not _leaves_name(connection, step, holder_id):
        return None
    names = further_names(new.name)
    taken = find_names(connection, [(flow_id, name) for name in names])
    free = (name for name in names if (flow_id, name) not in taken and (flow_id, name) not in also_taken)
    return next(free, None) or name_with_id(new.name, new.execution_id)


def _leaves_name(connection: Connection, step: StartingStep, holder_id: str) -> bool:
    holder = fetch_rows(connection, _HOLDER, {"b_id": holder_id})
    if not holder or holder[0].parent_id != step.execution_id:
        return False
    is_over = likely_status(holder[0].status, holder[0].stopped_at) is not Status.RUNNING or holder[0].stop_due
    if not is_over and not step.has_new_token:
        return False
    return step.is_retry or any(
        row.redrive_count for row in fetch_rows(connection, _PARENT, {"b_id": step.execution_id})
    )


_HOLDER = select(executions.c.parent_id, executions.c.status, executions.c.stopped_at, executions.c.stop_due).where(
    executions.c.execution_id == bindparam("b_id")
)
_PARENT = select(executions.c.redrive_count).where(executions.c.execution_id == bindparam("b_id"))
