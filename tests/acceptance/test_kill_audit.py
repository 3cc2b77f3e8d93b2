"""Kill the server at any moment: the audit has a record of every change, and the result of every answered one."""

import random
import threading

import httpx
from sqlalchemy import select

from flowserver.store.schema.audit_tables import audit_records
from flowserver.store.schema.tables import flows
from flowserver.store.sql.database import Database
from tests.support.server import ServerProcess

KILLS = 3
CLIENTS = 4
PATIENCE_SECONDS = 60
DEFINITION = {"definition": "version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n"}


class Clients:
    """Create one flow after the other until the server is down."""

    def __init__(self, url: str) -> None:
        self.answered: list[str] = []
        self.enough = threading.Event()
        self._url = url
        self._threads = [threading.Thread(target=self._create, args=(number,)) for number in range(CLIENTS)]

    def run_until_killed(self, server: ServerProcess, answers: int, name: str) -> list[str]:
        """Kill the server after so many answers; returns the names of flows that were answered."""
        self._answers, self._name = answers, name
        for thread in self._threads:
            thread.start()
        assert self.enough.wait(PATIENCE_SECONDS)
        server.kill()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()
        return self.answered

    def _create(self, number: int) -> None:
        with httpx.Client(base_url=self._url, timeout=PATIENCE_SECONDS, trust_env=False) as http:
            count = 0
            while True:
                count += 1
                flow = f"{self._name}-{number}-{count}"
                try:
                    reply = http.put(f"/v1/flows/{flow}", json=DEFINITION)
                except httpx.TransportError:
                    return
                assert reply.status_code == 201, reply.text
                self.answered.append(flow)
                if len(self.answered) >= self._answers:
                    self.enough.set()


def test_no_change_is_without_a_record(any_url: str) -> None:
    dice = random.Random(20261124)
    answered: set[str] = set()
    for kill in range(KILLS):
        server = ServerProcess(any_url, "--migrate")
        answered.update(Clients(server.url).run_until_killed(server, dice.randint(20, 60), f"k{kill}"))
    database = Database(any_url)
    with database.read() as connection:
        created = set(connection.execute(select(flows.c.name)).scalars())
        records = connection.execute(select(audit_records.c.object, audit_records.c.result)).all()
    database.close()
    begun = {record.object.removeprefix("flows/") for record in records}
    done = {record.object.removeprefix("flows/") for record in records if record.result == "ok"}
    assert answered <= done <= created <= begun
