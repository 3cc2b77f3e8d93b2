"""Schedules on real servers: three nodes of which one is killed at the second of the tick, and a
server that was down.
"""

import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.function_server import Call, FunctionServer
from tests.support.server import ServerProcess

SCHEDULES = 40
PATIENCE_SECONDS = 60
CALL = """
version: v1
type: flow
steps:
  - {type: task, name: t, resourceArn: "acs:fc:::services/shop/functions/tick"}
"""
WAIT = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: w, duration: 86400}\n"


class Ticks:
    """A function that counts executions, and signals when the first has called it."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.first = threading.Event()

    def answer(self, call: Call) -> Any:
        self.calls[call.headers["idempotency-key"]] += 1
        self.first.set()
        return {}


def test_a_node_killed_at_the_second_of_the_tick_loses_and_doubles_none(migrated_postgres_url: str) -> None:
    ticks = Ticks()
    nodes = [ServerProcess(migrated_postgres_url) for _ in range(3)]
    try:
        with (
            FunctionServer(ticks.answer) as functions,
            httpx.Client(base_url=nodes[0].url, timeout=PATIENCE_SECONDS, trust_env=False) as http,
        ):
            functions.register(nodes[0].url, "shop/tick")
            http.put("/v1/flows/f", json={"definition": CALL}).raise_for_status()
            second = int(time.time() + 5) % 60
            fields = {"cronExpression": f"{second} * * * * ?", "remainingActions": 1, "catchUpSeconds": 3600}
            for number in range(SCHEDULES):
                http.put(f"/v1/flows/f/schedules/s{number}", json=fields).raise_for_status()
            assert ticks.first.wait(120)
            nodes[2].kill()
            shown = _until_over(http)
        names = [schedule["recent"][0]["executionName"] for schedule in shown]
        assert len(set(names)) == SCHEDULES
        assert len(ticks.calls) == SCHEDULES
        assert {(each["started"], each["missed"], each["skipped"]) for each in shown} == {(1, 0, 0)}
        with psycopg.connect(migrated_postgres_url) as connection:
            assert connection.execute("SELECT count(*) FROM executions").fetchone() == (SCHEDULES,)
    finally:
        for node in nodes:
            node.kill()


def _until_over(http: httpx.Client) -> list[dict[str, Any]]:
    """All schedules once each has run and its execution has ended; the lease of the dead node expires meanwhile."""
    deadline = time.monotonic() + 2 * PATIENCE_SECONDS
    shown: list[dict[str, Any]] = []
    for number in range(SCHEDULES):
        while True:
            schedule = http.get(f"/v1/flows/f/schedules/s{number}").json()
            if schedule["recent"] and schedule["recent"][0]["status"] == "Succeeded":
                break
            assert time.monotonic() < deadline, schedule
            for run in schedule["recent"]:
                http.get(f"/v1/flows/f/executions/{run['executionName']}", params={"wait": 5})
        shown.append(schedule)
    return shown


@pytest.mark.parametrize(
    ("overlap", "started", "waiting", "skipped"),
    [
        ("AllowAll", 5, 0, 0),
        ("Skip", 1, 0, 4),
        ("BufferOne", 1, 1, 3),
        ("BufferAll", 1, 4, 0),
    ],
)
def test_a_server_that_was_down_for_five_ticks(
    tmp_path: Path, overlap: str, started: int, waiting: int, skipped: int
) -> None:
    """It is down while five ticks pass: the rows are set back by five hours, which has the same effect."""
    url = f"sqlite:///{tmp_path}/flows.db"
    with ServerProcess(url) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        http.put("/v1/flows/f", json={"definition": WAIT}).raise_for_status()
        fields = {"cronExpression": "@every 60m", "overlap": overlap, "catchUpSeconds": 86400}
        http.put("/v1/flows/f/schedules/s", json=fields).raise_for_status()
    moved = ", ".join(f"{name} = {name} - 5 * 3600000" for name in ("next_at", "wake_at", "anchor_at"))
    with closing(sqlite3.connect(tmp_path / "flows.db")) as connection, connection:
        connection.execute(f"UPDATE schedules SET {moved}")
    with ServerProcess(url) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            shown = http.get("/v1/flows/f/schedules/s").json()
            if shown["started"] + shown["waiting"] + shown["skipped"] >= 5:
                break
            assert time.monotonic() < deadline, shown
    assert (shown["started"], shown["waiting"], shown["skipped"]) == (started, waiting, skipped)
    assert shown["missed"] == 0
