"""Since when the oldest work waits: right instants, and no more rows visited in larger tables."""

from sqlalchemy import Connection, insert, select, text

from flowserver.machine.events import Event, EventType
from flowserver.machine.state import Status, WaitKind
from flowserver.store.executions.history import save_events
from flowserver.store.executions.history_parts import KnownParts
from flowserver.store.overview.ages import oldest_entry_of_waiting_tasks, oldest_start_of_running
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from flowserver.store.sql.prepared import send_waiting
from tests.store.effort import effort_of
from tests.store.rows import end, keep_flow, new_execution, save_new, scope


def enter(connection: Connection, execution_id: str, event_id: int, time_ms: int) -> None:
    event = Event(event_id, event_id - 1, EventType.STEP_ENTERED, "ask", time_ms, "{}")
    save_events(connection, [(execution_id, [event], KnownParts())])
    send_waiting(connection)


def read_both(connection: Connection) -> tuple[int | None, int | None]:
    return oldest_start_of_running(connection), oldest_entry_of_waiting_tasks(connection)


def test_the_oldest_of_all_flows(database: Database) -> None:
    with database.read() as connection:
        assert read_both(connection) == (None, None)
    with database.write() as connection:
        for name in "fgh":
            keep_flow(connection, name, f"flow-{name}")
        save_new(connection, end(new_execution("ended", started_at=1), Status.FAILED), scope(1))
        save_new(connection, new_execution("b", started_at=70), scope(1, WaitKind.TOKEN, entered_event_id=11))
        save_new(
            connection,
            new_execution("a", "flow-g", started_at=50),
            scope(1, WaitKind.TIMER, wake_at=1),
            scope(2, WaitKind.TOKEN, entered_event_id=11),
        )
        for execution_id, instants in {"a": (52, 90), "b": (72, 80)}.items():
            enter(connection, execution_id, 10, instants[0])
            enter(connection, execution_id, 11, instants[1])
    with database.read() as connection:
        assert read_both(connection) == (50, 80)


def fill(connection: Connection, numbers: range) -> None:
    """Executions that have ended, all older than the running one."""
    row = connection.execute(select(executions).where(executions.c.execution_id == "ended")).one()._asdict()
    rows = [row | {"execution_id": f"e{each:06}", "name": f"e{each:06}", "started_at": each} for each in numbers]
    connection.execute(insert(executions), rows)
    connection.execute(text("ANALYZE"))


def test_ended_executions_cost_nothing(database: Database) -> None:
    with database.write() as connection:
        keep_flow(connection, "f", "flow-f")
        save_new(connection, end(new_execution("ended"), Status.SUCCEEDED))
        save_new(connection, new_execution("runs", started_at=9_000_000), scope(1, WaitKind.TOKEN, entered_event_id=1))
        enter(connection, "runs", 1, 9_000_000)
    efforts = []
    for numbers in (range(100), range(100, 3_000)):
        with database.write() as connection:
            fill(connection, numbers)
        with database.read() as connection:
            if connection.dialect.name == "postgresql":  # which reads tables of so few pages whole
                connection.execute(text("SET LOCAL enable_seqscan = off"))
            assert read_both(connection) == (9_000_000, 9_000_000)
            efforts.append(effort_of(connection, read_both))
    assert efforts[1] <= 1.5 * efforts[0], efforts
