"""Since when the oldest work has been going on, for metrics: found by indexes."""

from sqlalchemy import Connection, func, select

from flowserver.machine.state import Status
from flowserver.store.executions.waiting_tasks import ScopeKey, list_waiting_tasks
from flowserver.store.schema.tables import executions, flows

header = executions.c


def oldest_running_at(connection: Connection) -> int | None:
    """When (ms) the oldest execution that runs was started; None if none runs. One look at an index for each flow."""
    oldest = select(func.min(header.started_at)).where(
        header.flow_id == flows.c.flow_id, header.status == str(Status.RUNNING)
    )
    found: int | None = connection.execute(select(func.min(oldest.scalar_subquery())).select_from(flows)).scalar_one()
    return found


def oldest_waiting_at(connection: Connection) -> int | None:
    """When (ms) a step was entered that waits for a report with its token; None if no step waits so.

    It is the first such step of the oldest execution with one, so steps of other executions may wait for longer. Looks
    at a bounded number of scopes.
    """
    page = list_waiting_tasks(connection, None, None, ScopeKey("", 0), 1)
    return page.tasks[0].entered_at if page.tasks else None
