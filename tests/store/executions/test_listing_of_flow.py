"""Lists of executions: order, pages, filters, and a cost that does not grow with the age of the flow."""

import random
from collections.abc import Iterator
from itertools import product

import pytest
from sqlalchemy import delete, insert

from flowserver.base.json_values import dump_json
from flowserver.machine.state import Status
from flowserver.store.executions import listing_of_flow
from flowserver.store.executions.listing_of_flow import ExecutionFilter, PageCursor, list_executions
from flowserver.store.schema.tables import executions
from flowserver.store.sql.database import Database
from tests.store.plans import plan_of
from tests.store.rows import end, new_execution, save_new

EVERYTHING = ExecutionFilter()


BYTES_MAX = 100_000


def names(database: Database, wanted: ExecutionFilter, begin: PageCursor | None = None, limit: int = 99) -> list[str]:
    with database.read() as connection:
        rows = list_executions(connection, "flow-f", wanted, begin=begin, limit=limit, bytes_max=BYTES_MAX).rows
    return [row.name for row in rows]


ORDER = ["ab", "B", "_", "b", "z", "a", "a_b"]


def test_newest_first_and_equal_starts_by_name(listed: Database) -> None:
    assert names(listed, EVERYTHING) == ORDER


def pages(database: Database, wanted: ExecutionFilter, size: int) -> list[list[str]]:
    """All pages, one after the other, each in its own transaction."""
    found: list[list[str]] = []
    begin: PageCursor | None = None
    while not found or begin is not None:
        with database.read() as connection:
            page = list_executions(connection, "flow-f", wanted, begin=begin, limit=size, bytes_max=BYTES_MAX)
        found.append([row.name for row in page.rows])
        begin = page.following
        assert len(found) < 1000
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_have_no_gap_or_overlap(listed: Database, size: int) -> None:
    found = pages(listed, EVERYTHING, size)
    assert [name for page in found for name in page] == ORDER
    assert {len(page) for page in found[:-1]} <= {size}


def test_a_page_may_begin_with_a_name_alone(listed: Database) -> None:
    assert names(listed, EVERYTHING, PageCursor("_")) == ORDER[2:]


def test_a_page_may_begin_at_a_deleted_execution(listed: Database) -> None:
    """Retention may delete it between two pages."""
    assert names(listed, EVERYTHING, PageCursor("_", 30)) == ORDER[2:]
    with listed.write() as connection:
        connection.execute(delete(executions).where(executions.c.name == "_"))
    assert names(listed, EVERYTHING, PageCursor("_", 30)) == ORDER[3:]


@pytest.mark.parametrize("unknown", ["nobody", "", "other"])
def test_a_page_with_an_invalid_start_is_empty(listed: Database, unknown: str) -> None:
    assert names(listed, EVERYTHING, PageCursor(unknown)) == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ExecutionFilter(status=Status.RUNNING), ["B", "_", "z", "a_b", "ab"]),
        (ExecutionFilter(status=Status.FAILED), ["b", "a"]),
        (ExecutionFilter(status=Status.STOPPED), []),
        (ExecutionFilter(started_from=30), ["ab", "B", "_", "b"]),
        (ExecutionFilter(started_to=10), ["a", "a_b"]),
        (ExecutionFilter(started_from=10, started_to=20), ["z", "a"]),
        (ExecutionFilter(started_from=11, started_to=10), []),
        (ExecutionFilter(name_prefix="a"), ["ab", "a", "a_b"]),
        (ExecutionFilter(name_prefix="b"), ["b"]),
        (ExecutionFilter(name_prefix="A"), []),
        (ExecutionFilter(names=["a", "b", "none"]), ["a", "b"]),
        (ExecutionFilter(names=["a", "ab", "b"], name_prefix="a", status=Status.FAILED), ["a"]),
        (ExecutionFilter(name_prefix="a_"), ["a_b"]),
        (ExecutionFilter(name_prefix="%"), []),
        (ExecutionFilter(name_prefix="a", status=Status.FAILED, started_to=10), ["a"]),
    ],
)
def test_filters(listed: Database, wanted: ExecutionFilter, found: list[str]) -> None:
    assert sorted(names(listed, wanted)) == sorted(found)


def test_filters_apply_to_every_page(listed: Database) -> None:
    running = ExecutionFilter(status=Status.RUNNING)
    assert names(listed, running, limit=3) == ["ab", "B", "_"]
    assert names(listed, running, PageCursor("_"), 3) == ["_", "z", "a_b"]


# the expected result: every execution is read and checked

STARTS = range(100, 140)
WORDS = ("a", "ab", "abc", "b", "z", "Z", "é", "\U0010ffff", "\ud7ff", "\ue000", "_")


@pytest.fixture
def many(database: Database) -> tuple[Database, list[dict[str, object]]]:
    """Three hundred executions of all kinds, many of them started in the same millisecond."""
    chosen = random.Random(7)
    rows = []
    for number in range(300):
        status = chosen.choice(list(Status))
        started_at = chosen.choice(STARTS)
        name = "".join(chosen.choices(WORDS, k=chosen.randrange(1, 4))) + f"-{number}"
        stopped_at = None if status is Status.RUNNING else started_at + chosen.randrange(50)
        parked_error = chosen.choice([None, None, "a bug"])
        rows.append(
            {"execution_id": f"id-{number}", "flow_id": "flow-f", "flow_name": "f", "name": name, "version": 1}
            | {"definition_id": "d", "status": str(status), "started_at": started_at, "stopped_at": stopped_at}
            | {"next_event_id": 1, "next_scope_id": 1, "next_wait_id": 1, "deadline_at": 9_999}
            | {"callback_due": False, "parked_error": parked_error}
            | {"flow_version": number % 4 or None, "flow_alias": "prod" if number % 4 == 3 else None}
        )
    with database.write() as connection:
        connection.execute(insert(executions), rows)
    return database, rows


def filters() -> Iterator[ExecutionFilter]:
    prefixes = (None, "a", "ab", "\ud7ff", "\U0010ffff", "nobody", "b\U0010ffff")
    times = ((None, None), (110, None), (None, 120), (105, 111), (120, 119))
    for status, prefix, (since, until), parked in product(
        (None, Status.RUNNING, Status.FAILED), prefixes, times, (None, True, False)
    ):
        yield ExecutionFilter(status=status, name_prefix=prefix, started_from=since, started_to=until, parked=parked)
    for qualifier, prefix, parked in product(("LATEST", "3", "prod", "none"), (None, "a"), (None, True, False)):
        yield ExecutionFilter(qualifier=qualifier, name_prefix=prefix, parked=parked)


def expected(rows: list[dict[str, object]], wanted: ExecutionFilter) -> list[str]:
    def fits(row: dict[str, object]) -> bool:
        is_parked = row["parked_error"] is not None and row["stopped_at"] is None
        return (
            wanted.status in (None, row["status"])
            and wanted.parked in (None, is_parked)
            and str(row["name"]).startswith(wanted.name_prefix or "")
            and wanted.qualifier in (None, row["flow_alias"], str(row["flow_version"] or "LATEST"))
            and (wanted.started_from or 0) <= int(str(row["started_at"])) <= (wanted.started_to or 999)
        )

    ordered = sorted(rows, key=lambda row: (-int(str(row["started_at"])), str(row["name"]).encode()))
    return [str(row["name"]) for row in ordered if fits(row)]


@pytest.mark.parametrize(
    ("looked_at", "few", "tried"), [(25_000, 2_000, 120), (25_000, 1, 50), (20, 10, 50), (1, 1, 8)]
)
def test_any_filter_finds_all_matches(
    many: tuple[Database, list[dict[str, object]]],
    monkeypatch: pytest.MonkeyPatch,
    looked_at: int,
    few: int,
    tried: int,
) -> None:
    """The bounds are so low that pages end early, and each page continues where the one before ended."""
    database, rows = many
    monkeypatch.setattr(listing_of_flow, "SCANNED_MAX", looked_at)
    monkeypatch.setattr(listing_of_flow, "NAMES_MAX", few)
    for wanted in random.Random(looked_at + few).sample(list(filters()), tried):
        found = pages(database, wanted, size=40)
        assert [name for page in found for name in page] == expected(rows, wanted), wanted
        assert all(found[:-1]) or looked_at < 25_000


def test_damaged_statuses_are_listed(sqlite_database: Database) -> None:
    statuses = ["'Aaaa'", "'Running!'", "'Zzz'", "x'00'", "CAST(x'ff' AS TEXT)", "7"]
    with sqlite_database.write() as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        for number, status in enumerate(statuses):
            save_new(connection, new_execution(f"e{number}", started_at=number))
            connection.exec_driver_sql(f"UPDATE executions SET status = {status} WHERE name = 'e{number}'")
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = OFF")
    assert names(sqlite_database, EVERYTHING) == ["e5", "e4", "e3", "e2", "e1", "e0"]
    assert pages(sqlite_database, EVERYTHING, 4) == [["e5", "e4", "e3", "e2"], ["e1", "e0"]]


def test_documents_are_read_only_on_request(listed: Database) -> None:
    with listed.write() as connection:
        ended = end(new_execution("done"), Status.SUCCEEDED, output={"a": 1})
        ended.input_text = "{}"
        save_new(connection, ended)
    found = {}
    for documents in (True, False):
        with listed.read() as connection:
            page = list_executions(
                connection, "flow-f", EVERYTHING, begin=None, limit=1, bytes_max=BYTES_MAX, documents=documents
            )
        found[documents] = (page.rows[0].name, page.rows[0].input, page.rows[0].output)
    assert found == {True: ("done", "{}", '{"a":1}'), False: ("done", "", None)}


@pytest.mark.parametrize(("documents", "beside", "expected"), [(True, 0, 3), (False, 0, 40), (True, 15_000, 2)])
def test_a_page_is_limited_by_bytes(database: Database, documents: bool, beside: int, expected: int) -> None:
    """Little more than the page is read."""
    with database.write() as connection:
        for number in range(40):
            stored = new_execution(f"id-{number}", name=f"e{number:02}", started_at=number)
            stored.input_text = dump_json({"s": "é" * 15_000})
            save_new(connection, stored)
    seen: list[list[str]] = []
    begin: PageCursor | None = None
    while not seen or begin is not None:
        with database.read() as connection:
            page = list_executions(
                connection,
                "flow-f",
                EVERYTHING,
                begin=begin,
                limit=99,
                bytes_max=BYTES_MAX,
                bytes_beside=beside,
                documents=documents,
            )
        seen.append([row.name for row in page.rows])
        begin = page.following
    assert max(map(len, seen)) == expected
    assert [name for names in seen for name in names] == [f"e{number:02}" for number in reversed(range(40))]


@pytest.mark.parametrize("bytes_max", [0, 29_999])
def test_an_execution_larger_than_a_page_is_returned_alone(database: Database, bytes_max: int) -> None:
    with database.write() as connection:
        for number in range(2):
            stored = new_execution(f"id-{number}", name=f"e{number}", started_at=number)
            stored.input_text = dump_json({"s": "é" * 15_000})
            save_new(connection, stored)
    with database.read() as connection:
        page = list_executions(connection, "flow-f", EVERYTHING, begin=None, limit=99, bytes_max=bytes_max)
    assert ([row.name for row in page.rows], page.following) == (["e1"], PageCursor("e0", 0))


INDEXES = {
    "everything": (EVERYTHING, "ix_executions_flow_id_status"),
    "a status": (ExecutionFilter(status=Status.FAILED, started_from=5, started_to=9), "ix_executions_flow_id_status"),
    "parked": (ExecutionFilter(parked=True, started_to=9), "ix_executions_parked"),
    "few names": (ExecutionFilter(name_prefix="a", status=Status.FAILED), "uq_executions_flow_id_name"),
    "names": (ExecutionFilter(names=["a", "b"], status=Status.FAILED), "uq_executions_flow_id_name"),
}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("begin", [None, PageCursor("b", 7)])
def test_lists_use_an_index(sqlite_database: Database, kind: str, begin: PageCursor | None) -> None:
    wanted, index = INDEXES[kind]
    with sqlite_database.read() as connection:
        plan = plan_of(
            connection, lambda c: list_executions(c, "flow-f", wanted, begin=begin, limit=9, bytes_max=BYTES_MAX)
        )
    assert any(index in line for line in plan)
    assert not [line for line in plan if line.startswith("SCAN executions")]
    sorts = [line for line in plan if "TEMP B-TREE" in line]
    assert len(sorts) <= 1  # of few names, or of damaged rows
