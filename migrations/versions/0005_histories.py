"""histories: the events of one turn in one row, instead of a row for each event"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

ROW_EVENTS_MAX = 100
"""Events per row after the migration; a row of 100 events normally has about a hundred kilobytes."""


def _events() -> sa.Table:
    return sa.Table(
        "events",
        sa.MetaData(),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Integer(), nullable=False),
        sa.Column("schedule_event_id", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("step_name", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "event_id", name="pk_events"),
        sqlite_with_rowid=False,
    )


def _histories() -> sa.Table:
    return sa.Table(
        "histories",
        sa.MetaData(),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("last_event_id", sa.Integer(), nullable=False),
        sa.Column("first_event_id", sa.Integer(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("execution_id", "last_event_id", name="pk_histories"),
    )


def upgrade() -> None:
    connection, events, histories = op.get_bind(), _events(), _histories()
    histories.create(connection)
    for execution_id in _execution_ids(connection, events):
        old = sa.select(events).where(events.c.execution_id == execution_id).order_by(events.c.event_id)
        rows = [_packed(run) for run in _runs(connection.execute(old).all())]
        connection.execute(sa.insert(histories), rows)
    op.drop_table("events")


def _execution_ids(connection: sa.Connection, table: sa.Table) -> Iterator[str]:
    """Rows one by one, so that the table is never in memory as a whole."""
    execution_id = connection.execute(sa.select(sa.func.min(table.c.execution_id))).scalar_one()
    while execution_id is not None:
        yield execution_id
        following = sa.select(sa.func.min(table.c.execution_id)).where(table.c.execution_id > execution_id)
        execution_id = connection.execute(following).scalar_one()


def _runs(rows: Sequence[Any]) -> Iterator[list[Any]]:
    """Groups of events with one instant and consecutive ids; gaps stay gaps."""
    for _, group in groupby(enumerate(rows), key=lambda each: (each[1].time, each[1].event_id - each[0])):
        run = [row for _, row in group]
        yield from (run[start : start + ROW_EVENTS_MAX] for start in range(0, len(run), ROW_EVENTS_MAX))


def _packed(run: list[Any]) -> dict[str, Any]:
    texts = [f"[{row.schedule_event_id},{json.dumps([row.type, row.step_name])[1:-1]},{row.detail}]" for row in run]
    return {
        "execution_id": run[0].execution_id,
        "last_event_id": run[-1].event_id,
        "first_event_id": run[0].event_id,
        "time": run[0].time,
        "events": f"[{','.join(texts)}]",
    }


def downgrade() -> None:
    connection, events, histories = op.get_bind(), _events(), _histories()
    events.create(connection)
    for execution_id in _execution_ids(connection, histories):
        kept = sa.select(histories).where(histories.c.execution_id == execution_id)
        rows = [event for row in connection.execute(kept).all() for event in _unpacked(row)]
        connection.execute(sa.insert(events), rows)
    op.drop_table("histories")


def _unpacked(row: Any) -> Iterator[dict[str, Any]]:
    for event_id, (cause, type_name, step_name, detail) in enumerate(json.loads(row.events), row.first_event_id):
        yield {
            "execution_id": row.execution_id,
            "event_id": event_id,
            "schedule_event_id": cause,
            "type": type_name,
            "step_name": step_name,
            "time": row.time,
            "detail": json.dumps(detail, ensure_ascii=False, separators=(",", ":")),
        }
