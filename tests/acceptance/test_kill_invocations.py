"""Kill the server at any moment: every accepted asynchronous invocation ends, and makes only legal transitions."""

import random
import threading
from collections import defaultdict
from typing import Any

import httpx
from sqlalchemy import select

from flowserver.machine.invocations.states import ENDED, LEGAL
from flowserver.store.invocations.rows import InvocationRow, read_invocation
from flowserver.store.schema.invocation_tables import invocations
from flowserver.store.sql.database import Database
from tests.support.function_server import Call, FunctionError, FunctionServer
from tests.support.server import ServerProcess

KILLS = 2
CALLS_BETWEEN_KILLS = 40
PATIENCE_SECONDS = 60
PAY = "/2016-08-15/services/shop/functions/pay"


class Worker:
    """The function: fails now and then, and signals the test after enough calls for a kill."""

    def __init__(self, dice: random.Random) -> None:
        self.attempts: dict[str, list[int]] = defaultdict(list)
        self.enough = threading.Event()
        self.until = 0
        self._count = 0
        self._dice = dice

    def answer(self, call: Call) -> Any:
        self.attempts[call.headers["x-fc-stateful-async-invocation-id"]].append(
            int(call.headers["x-flowserver-attempt"])
        )
        self._count += 1
        if self._count >= self.until:
            self.enough.set()
        return FunctionError("Unlucky") if self._dice.random() < 0.1 else call.event

    def expect(self, further: int) -> None:
        self.enough.clear()
        self.until = self._count + further


class Caller:
    """Submits one invocation after the other until the server is down; records the accepted ones."""

    def __init__(self) -> None:
        self.accepted: set[str] = set()
        self.stopped: set[str] = set()
        self._number = 0

    def submit_until_killed(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False) as http:
            try:
                while True:
                    self.submit(http)
            except httpx.TransportError:
                pass

    def submit(self, http: httpx.Client) -> None:
        self._number += 1
        name = f"task-{self._number}"
        headers = {"X-Fc-Invocation-Type": "Async", "X-Fc-Stateful-Async-Invocation-Id": name}
        reply = http.post(f"{PAY}/invocations", json={"n": self._number}, headers=headers)
        assert reply.status_code == 202, reply.text
        self.accepted.add(name)
        if self._number % 10 == 0 and http.put(f"{PAY}/stateful-async-invocations/{name}").status_code == 200:
            self.stopped.add(name)


def test_accepted_invocations_end_after_kills_at_any_moment(any_url: str) -> None:
    dice = random.Random(20261122)
    worker, caller = Worker(dice), Caller()
    with FunctionServer(worker.answer) as functions:
        server = ServerProcess(any_url, "--migrate")
        functions.register(server.url, "shop/pay")
        for _ in range(KILLS):
            worker.expect(dice.randrange(1, CALLS_BETWEEN_KILLS))
            submitting = threading.Thread(target=caller.submit_until_killed, args=(server.url,))
            submitting.start()
            assert worker.enough.wait(PATIENCE_SECONDS)
            server.kill()
            submitting.join()
            server = ServerProcess(any_url)
        with server:
            rows = await_ends(any_url, worker)
    assert caller.accepted <= rows.keys()
    for name, row in rows.items():
        seen = [event.status for event in row.state.events]
        assert set(zip([None, *seen], seen, strict=False)) <= LEGAL, (name, seen)
        if name in caller.stopped:
            assert row.state.status == "Stopped"
    assert all(numbers == sorted(set(numbers)) for numbers in worker.attempts.values())


def await_ends(url: str, worker: Worker) -> dict[str, InvocationRow]:
    """All invocations by id, once they have ended; reads after every call of the function, or after a while."""
    database = Database(url)
    try:
        for _ in range(PATIENCE_SECONDS * 2):
            with database.read() as connection:
                rows = [read_invocation(row) for row in connection.execute(select(invocations))]
            if all(row.state.status in ENDED for row in rows):
                return {row.invocation_id: row for row in rows}
            worker.expect(1)
            worker.enough.wait(0.5)
        raise AssertionError([row for row in rows if row.state.status not in ENDED])
    finally:
        database.close()
