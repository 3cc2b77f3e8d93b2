"""Deletes ended executions whose retention is over, and the flows and definitions that nothing refers to.

Each function that deletes belongs in one small transaction and deletes executions whole. An execution with a long
history is hidden first: its header moves to a flow id that does not exist, so readers no longer find it, and stays
until the history is deleted in pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, and_, delete, func, not_, select, update

from flowserver.machine.state import Status
from flowserver.store.schema.tables import (
    DELETABLE,
    definitions,
    execution_documents,
    executions,
    finished_items,
    flows,
    histories,
    history_parts,
    kept_items,
    kept_scopes,
    scopes,
)
from flowserver.store.schema.version_tables import flow_versions
from flowserver.store.sql.unreadable import is_text

HIDDEN: Final = ""
"""The flow id of executions that are being deleted; no flow has it."""

header = executions.c
ENDED = and_(DELETABLE, header.status.in_([str(status) for status in Status if status is not Status.RUNNING]))
"""Ended, and no callback is due. An execution with a damaged status is never deleted."""


@dataclass(frozen=True, slots=True)
class KeptFlow:
    """A flow, and when (ms) the first of its deletable executions ended."""

    flow_id: str
    retention_days: int | None
    is_deleted: bool
    oldest_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """An execution that may be deleted, with an upper bound of the rows of its history."""

    execution_id: str
    events: int


def kept_flows(connection: Connection) -> list[KeptFlow]:
    """Flows with ended executions, including deleted flows; one index search for each flow."""
    first = select(header.stopped_at).where(header.flow_id == flows.c.flow_id, DELETABLE)
    oldest = first.order_by(header.stopped_at).limit(1).scalar_subquery()
    query = select(flows.c.flow_id, flows.c.retention_days, flows.c.deleted_at, oldest.label("oldest"))
    return [
        KeptFlow(row.flow_id, row.retention_days, row.deleted_at is not None, row.oldest)
        for row in connection.execute(query)
        if isinstance(row.oldest, int) and is_text(row.flow_id)
    ]


def ended_before(connection: Connection, flow_id: str, before_ms: int, limit: int) -> list[Ended]:
    """Executions of a flow that ended before the instant, in the order of their ends."""
    query = (
        select(header.execution_id, header.next_event_id)
        .where(header.flow_id == flow_id, header.stopped_at < before_ms, ENDED)
        .order_by(header.stopped_at)
        .limit(limit)
    )
    return [
        Ended(row.execution_id, row.next_event_id if isinstance(row.next_event_id, int) else 0)
        for row in connection.execute(query)
        if is_text(row.execution_id)
    ]


def delete_ended(connection: Connection, execution_ids: Sequence[str], before_ms: int) -> int:
    """Delete those that ended before the instant, with all their rows, and return how many.

    An execution that was redriven since it was found is kept, even if it has ended again. Rows locked by another node
    are skipped.
    """
    mine = select(header.execution_id).where(header.execution_id.in_(execution_ids), ENDED)
    mine = mine.where(header.stopped_at < before_ms)
    ids = connection.execute(mine.order_by(header.execution_id).with_for_update(skip_locked=True)).scalars().all()
    if ids:
        kept = kept_scopes, kept_items
        for table in (histories, history_parts, execution_documents, scopes, finished_items, *kept, executions):
            connection.execute(delete(table).where(table.c.execution_id.in_(ids)))
    return len(ids)


def hide_ended(connection: Connection, execution_id: str, before_ms: int) -> bool:
    """Hide an execution that ended before the instant, so that its name is free again; False if it did not."""
    hidden = update(executions).where(header.execution_id == execution_id, header.stopped_at < before_ms, ENDED)
    return connection.execute(hidden.values(flow_id=HIDDEN, name=execution_id)).rowcount > 0


def trim_history(connection: Connection, execution_id: str, limit: int) -> int:
    """Delete the first rows of a hidden execution's history and return how many."""
    hidden = select(header.execution_id).where(header.execution_id == execution_id, header.flow_id == HIDDEN)
    if connection.execute(hidden.with_for_update()).one_or_none() is None:
        return 0
    gone = 0
    for table, order in ((histories, histories.c.last_event_id), (history_parts, history_parts.c.event_id)):
        own = table.c.execution_id == execution_id
        first = select(order).where(own).order_by(order).limit(limit - gone)
        if gone < limit:
            gone += connection.execute(delete(table).where(own, order.in_(first))).rowcount
    return gone


def forget_flows(connection: Connection, before_ms: int, limit: int) -> int:
    """Delete the rows of flows that were deleted before the instant and have no executions, with their definitions.

    The instant must be old enough that no start in progress can have read the flow as live. Returns how many.
    """
    used = select(header.execution_id).where(header.flow_id == flows.c.flow_id).exists()
    query = select(flows.c.flow_id).where(flows.c.deleted_at.is_not(None), flows.c.deleted_at < before_ms, not_(used))
    ids = [flow_id for flow_id in connection.execute(query.limit(limit)).scalars() if is_text(flow_id)]
    if ids:
        connection.execute(delete(definitions).where(definitions.c.flow_id.in_(ids)))
        connection.execute(delete(flows).where(flows.c.flow_id.in_(ids)))
    return len(ids)


@dataclass(frozen=True, slots=True)
class Unused:
    """Definitions of a flow that neither executions nor versions refer to, valid while its `modified_at` is this."""

    flow_id: str
    modified_at: int
    definition_ids: Sequence[str]


def unused_definitions(connection: Connection, before_ms: int) -> list[Unused]:
    """Definitions that were replaced before the instant, are not published and have no executions.

    Reads every header of a flow that has replaced definitions. For the instant see `forget_flows`.
    """
    several = select(definitions.c.flow_id).group_by(definitions.c.flow_id).having(func.count() > 1)
    query = select(flows.c.flow_id, flows.c.definition_id, flows.c.modified_at).where(
        flows.c.flow_id.in_(several), flows.c.deleted_at.is_(None), flows.c.modified_at < before_ms
    )
    found = []
    for flow in connection.execute(query).all():
        used = select(header.definition_id).where(header.flow_id == flow.flow_id).distinct()
        published = select(flow_versions.c.definition_id).where(flow_versions.c.flow_id == flow.flow_id)
        own = select(definitions.c.definition_id).where(definitions.c.flow_id == flow.flow_id)
        unused = set(filter(is_text, connection.execute(own).scalars()))
        # In this order: once a version is deleted, all its starts have committed.
        unused -= {flow.definition_id, *connection.execute(published).scalars(), *connection.execute(used).scalars()}
        found.append(Unused(flow.flow_id, flow.modified_at, sorted(unused)))
    return [each for each in found if each.definition_ids]


def delete_definitions(connection: Connection, unused: Unused) -> int:
    """Delete them and return how many; none if the flow has changed since, perhaps back to one of them."""
    same = (flows.c.flow_id == unused.flow_id) & (flows.c.modified_at == unused.modified_at)
    if connection.execute(select(flows.c.flow_id).where(same).with_for_update()).one_or_none() is None:
        return 0
    gone = delete(definitions).where(definitions.c.definition_id.in_(unused.definition_ids))
    return connection.execute(gone).rowcount
