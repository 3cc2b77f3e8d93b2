"""A disk that is almost full: new work is refused, running work ends, and space opens the door again."""

import secrets
from pathlib import Path
from typing import Final

import httpx
import pytest

from flowserver.engine.disk_watch import DiskWatch
from flowserver.engine.schedules.loop import ScheduleLoop
from flowserver.operations.audited import AUDITED
from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from flowserver.operations.topics import TopicAttributes
from flowserver.server import Application, create_app
from flowserver.settings import Settings
from flowserver.store.integrity.disk_reserve import MEASURED_SECONDS, DiskAlmostFull, DiskReserve
from flowserver.store.integrity.file_space import database_bytes
from tests.api.conftest import client_of
from tests.api.rest.conftest import PASS, WAIT

MIB = 2**20


class Disk:
    """A disk whose free space the test sets, and the clock of its measurements."""

    def __init__(self) -> None:
        self.free = 200 * MIB
        self.seconds = 0.0
        self.measured = 0
        self.falls_after: int | None = None
        """After so many further measurements it is full; meanwhile each question takes a second."""

    def reserve(self, file: Path | None = Path("data/x.db"), bytes_min: int = 128 * MIB) -> DiskReserve:
        return DiskReserve(file, bytes_min, free_bytes=self.measure, now=lambda: self.seconds)

    def becomes(self, free: int) -> None:
        """Set the free bytes, after the last measurement has become old."""
        self.free = free
        self.seconds += MEASURED_SECONDS

    def measure(self, folder: Path) -> int:
        self.measured += 1
        if self.falls_after is None:
            return self.free
        self.falls_after -= 1
        return self.free if self.falls_after >= 0 else 0

    def now(self) -> float:
        if self.falls_after is not None:
            self.seconds += MEASURED_SECONDS
        return self.seconds


def test_a_measurement_is_used_for_a_second() -> None:
    disk = Disk()
    reserve = disk.reserve()
    reserve.require()
    disk.free = 127 * MIB
    reserve.require()
    assert disk.measured == 1
    disk.seconds += MEASURED_SECONDS
    with pytest.raises(DiskAlmostFull, match="has 127 MiB left, and disk_reserve_mib keeps 128"):
        reserve.require()


def test_the_log_says_once_when_refusing_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Just above the border nothing changes, so that starts at the border do not fill the log."""
    disk = Disk()
    reserve = disk.reserve()
    for free in (200, 127, 120, 128, 135):
        disk.becomes(free * MIB)
        assert (reserve.refusal() is not None) == (free != 200)
    disk.becomes(136 * MIB)
    assert reserve.refusal() is None
    disk.becomes(129 * MIB)
    reserve.require()
    assert [record.getMessage() for record in caplog.records] == [
        "new work is refused: the disk of the database has 127 MiB left, and disk_reserve_mib keeps 128 for work that "
        "has begun; new work is accepted once 136 MiB are free",
        "new work is accepted again",
    ]


async def test_a_server_without_requests_logs_it(
    client: httpx.AsyncClient, app: Application, caplog: pytest.LogCaptureFixture
) -> None:
    engine = app.state.engine
    disk = Disk()
    disk.free = 0
    engine.disk._measure, engine.disk._until = disk.measure, 0.0
    [watch] = [loop for loop in engine.loops if isinstance(loop, DiskWatch)]
    await watch.run_once()
    assert ["new work is refused" in each.getMessage() for each in caplog.records] == [True]


def test_postgresql_no_reserve_and_an_unreadable_disk_refuse_nothing(tmp_path: Path) -> None:
    disk = Disk()
    disk.free = 0
    assert disk.reserve(None).free_bytes() is None
    disk.reserve(None).require()
    disk.reserve(bytes_min=0).require()
    gone = DiskReserve(tmp_path / "gone" / "x.db", 2**60)
    assert gone.free_bytes() is None
    gone.require()
    with pytest.raises(DiskAlmostFull):
        DiskReserve(tmp_path / "x.db", 2**60).require()


@pytest.fixture
def disk(client: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk of the server."""
    disk, reserve = Disk(), app.state.engine.disk
    monkeypatch.setattr(reserve, "_measure", disk.measure)
    monkeypatch.setattr(reserve, "_now", disk.now)
    disk.seconds = reserve._until
    return disk


async def test_new_work_is_refused_and_running_work_ends(
    client: httpx.AsyncClient, app: Application, disk: Disk
) -> None:
    operations = app.state.operations
    for flow, text in (("p", PASS), ("w", WAIT)):
        await client.put(f"/v1/flows/{flow}", json={"definition": text})
    await client.put("/v1/functions/acs:fc:::services/s/functions/f", json={"url": "http://127.0.0.1:1/"})
    started = await client.post("/v1/flows/w/executions", json={"name": "running"})
    assert started.status_code == 201
    await operations.queues.create("q", QueueAttributes())

    disk.becomes(100 * MIB)
    refused = [
        await client.post("/v1/flows/p/executions", json={"name": "e"}),
        await client.post("/", data={"Action": "StartExecution", "Version": "2019-03-15", "FlowName": "p"}),
        await client.post(
            "/2016-08-15/services/s/functions/f/invocations", headers={"X-Fc-Invocation-Type": "Async"}, content=b"{}"
        ),
        await client.post("/queues/q/messages", content="<Message><MessageBody>x</MessageBody></Message>"),
    ]
    for answer in refused:
        assert answer.status_code == 503, answer.text
        assert "DiskAlmostFull" in answer.text
        assert int(answer.headers["Retry-After"]) >= 1
    metrics = (await client.get("/metrics")).text
    assert "flowserver_free_disk_bytes 1.048576e+08" in metrics
    assert "flowserver_disk_reserve_bytes 1.34217728e+08" in metrics
    assert "flowserver_new_work_refused 1.0" in metrics
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")  # reports and stops still come in
    why = ready.json()["newWorkRefused"]
    assert "has 100 MiB left" in why
    assert (await client.get("/v1/overview")).json()["newWorkRefused"] == why
    stopped = await client.post("/v1/flows/w/executions/running/stop")
    assert stopped.json()["status"] == "Stopped"
    assert (await client.get("/v1/flows/p/executions/e")).status_code == 404

    disk.becomes(200 * MIB)
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    assert "flowserver_new_work_refused 0.0" in (await client.get("/metrics")).text
    assert (await client.get("/v1/overview")).json()["newWorkRefused"] is None
    assert (await client.post("/v1/flows/p/executions?wait=60", json={"name": "e"})).json()["status"] == "Succeeded"
    await operations.queues.send("q", [OutgoingMessage(body="x")])


async def test_a_schedule_tries_its_start_again(
    client: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its start is refused like a caller's, which its history of refusals shows."""
    engine = app.state.engine
    await client.put("/v1/flows/p", json={"definition": PASS})
    monkeypatch.setattr(engine.disk, "_measure", lambda folder: 0)
    engine.disk._until = 0.0
    made = await client.put("/v1/flows/p/schedules/s", json={"cronExpression": "@every 60m"})
    assert made.status_code in (200, 201), made.text
    fired = await client.post("/v1/flows/p/schedules/s/trigger", json={})
    assert fired.status_code < 300, fired.text
    loop: ScheduleLoop = engine.schedules
    await loop.handle_due()
    shown = (await client.get("/v1/flows/p/schedules/s")).json()
    assert "disk" in str(shown), shown


REFUSED: Final = {
    "executions.start": (
        ("POST", "/v1/flows/p/executions", {"json": {}}),
        ("POST", "/v1/flows/p/executions?wait=1", {"json": {"name": "waited-for"}}),
        ("POST", "/", {"data": {"Action": "StartExecution", "Version": "2019-03-15", "FlowName": "p"}}),
        ("POST", "/", {"data": {"Action": "StartSyncExecution", "Version": "2019-03-15", "FlowName": "p"}}),
    ),
    "executions.redrive": (("POST", "/v1/flows/w/executions/ended/redrive", {}),),
    "executions.redrive-many": (("POST", "/v1/flows/w/redrive", {"json": {"status": "Stopped"}}),),
    "invocations.submit": (
        ("POST", "/2016-08-15/services/s/functions/f/invocations", {"headers": {"X-Fc-Invocation-Type": "Async"}}),
        ("POST", "/2021-04-06/services/s/functions/f/invocations", {"headers": {"X-Fc-Invocation-Type": "Async"}}),
    ),
    "queues.send": (
        ("POST", "/queues/q/messages", {"content": "<Message><MessageBody>x</MessageBody></Message>"}),
        (
            "POST",
            "/queues/q/messages",
            {"content": "<Messages><Message><MessageBody>x</MessageBody></Message></Messages>"},
        ),
        ("POST", "/v1/queues/q/messages", {"json": {"body": "x"}}),
    ),
    "topics.publish": (
        ("POST", "/topics/t/messages", {"content": "<Message><MessageBody>x</MessageBody></Message>"}),
        ("POST", "/v1/topics/t/messages", {"json": {"body": "x"}}),
    ),
}
"""By operation the requests that begin work."""

GOES_ON: Final = frozenset(
    {
        # What ends work or lets it go on, what waits in a schedule until its start is accepted, and a call whose
        # result is not stored.
        *("executions.stop", "executions.restart", "invocations.stop", "invocations.restart", "tasks.report"),
        *("schedules.trigger", "schedules.backfill", "functions.invoke"),
        # What operators need to repair a server, bounded by the number of flows, functions and so on.
        *(f"flows.{each}" for each in ("create", "update", "put", "delete")),
        *("versions.publish", "versions.delete"),
        *(f"aliases.{each}" for each in ("create", "update", "put", "delete")),
        *(f"schedules.{each}" for each in ("create", "update", "put", "pause", "resume", "delete")),
        *(f"{each}.{change}" for each in ("functions", "secrets", "async-configs") for change in ("put", "delete")),
        *("queues.create", "queues.update", "queues.purge", "queues.delete"),
        *(f"{each}.{change}" for each in ("topics", "subscriptions") for change in ("create", "update", "delete")),
        *("keys.create", "keys.link", "keys.disable", "keys.rotate-tokens", "keys.open", "secrets.rekey"),
        *("database.restore", "database.fence", "database.copy"),
    }
)


def test_each_operation_is_refused_or_goes_on() -> None:
    """A new operation belongs to one of the two; this and docs/how-to/troubleshoot.md say to which."""
    assert not REFUSED.keys() & GOES_ON
    assert REFUSED.keys() | GOES_ON == AUDITED.keys()


async def test_every_way_to_begin_work_is_refused(client: httpx.AsyncClient, app: Application, disk: Disk) -> None:
    operations = app.state.operations
    for flow, text in (("p", PASS), ("w", WAIT)):
        await client.put(f"/v1/flows/{flow}", json={"definition": text})
    await client.put("/v1/functions/acs:fc:::services/s/functions/f", json={"url": "http://127.0.0.1:1/"})
    await client.post("/v1/flows/w/executions", json={"name": "ended"})
    await client.post("/v1/flows/w/executions/ended/stop")
    await operations.queues.create("q", QueueAttributes())
    await operations.topics.create("t", TopicAttributes())
    disk.becomes(0)
    for requests in REFUSED.values():
        for method, url, further in requests:
            answer = await client.request(method, url, **further)
            assert (answer.status_code, "DiskAlmostFull" in answer.text) == (503, True), (url, answer.text)
    assert (await client.get("/v1/flows/w/executions/ended")).json()["status"] == "Stopped"
    disk.becomes(200 * MIB)
    for requests in REFUSED.values():
        for method, url, further in requests:
            answer = await client.request(method, url, **further)
            assert "DiskAlmostFull" not in answer.text, url


async def test_a_bulk_redrive_ends_where_the_disk_was_full_and_goes_on_from_there(
    client: httpx.AsyncClient, disk: Disk
) -> None:
    """What runs and waits for the redrive goes on even then: it has begun."""
    await client.put("/v1/flows/w", json={"definition": WAIT})
    names = [f"e{number}" for number in range(3)]
    for name in names:
        await client.post("/v1/flows/w/executions", json={"name": name})
        await client.post(f"/v1/flows/w/executions/{name}/stop")
    disk.falls_after = 1
    first = (await client.post("/v1/flows/w/redrive", json={"status": "Stopped"})).json()
    assert (first["redriven"], first["refused"]) == (1, [])
    disk.falls_after = None
    disk.becomes(200 * MIB)
    more = {"status": "Stopped", "nextToken": first["nextToken"]}
    second = (await client.post("/v1/flows/w/redrive", json=more)).json()
    assert sorted(first["executions"] + second["executions"]) == names

    broken = f"{PASS}  - {{type: wait, name: rest, duration: $.none}}\n"
    await client.put("/v1/flows/b", json={"definition": broken, "onRetriesExhausted": "waitForRedrive"})
    await client.post("/v1/flows/b/executions?wait=1", json={"name": "waits"})
    disk.becomes(0)
    done = (await client.post("/v1/flows/b/redrive", json={"waitingForRedrive": True})).json()
    assert (done["redriven"], done["refused"]) == (1, [])


async def test_data_above_its_bound_is_as_a_full_disk(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """On PostgreSQL, too; deleted rows count no more, although its files keep their size."""
    app = create_app(Settings(database_url=database_url, drain_seconds=0, data_gib_max=2 / 1024))
    async with app.router.lifespan_context(app), client_of(app) as client:
        [watch] = [loop for loop in app.state.engine.loops if isinstance(loop, DiskWatch)]
        queues = app.state.operations.queues
        await client.put("/v1/flows/p", json={"definition": PASS})
        await queues.create("q", QueueAttributes())
        for _ in range(40):
            await queues.send("q", [OutgoingMessage(body=secrets.token_hex(30_000))])
        await watch.run_once()
        refused = await client.post("/v1/flows/p/executions", json={"name": "e"})
        assert (refused.status_code, refused.json()["code"]) == (503, "DiskAlmostFull")
        assert "of the 0.001953 GiB that data_gib_max gives it" in refused.json()["detail"]
        seen = (await client.get("/metrics")).text
        assert "flowserver_new_work_refused 1.0" in seen
        assert "flowserver_data_bytes_max 2.097152e+06" in seen
        assert "data_gib_max" in (await client.get("/readyz")).json()["newWorkRefused"]
        before = app.state.engine.database.run_read(database_bytes)
        assert before > 2 * MIB

        await queues.purge("q")
        await watch.run_once()
        assert (await client.post("/v1/flows/p/executions", json={"name": "e"})).status_code == 201
        assert app.state.engine.database.run_read(database_bytes) >= before
    lines = [each.getMessage() for each in caplog.records if each.getMessage().startswith("new work is ")]
    assert [line.partition(":")[0] for line in lines] == ["new work is refused", "new work is accepted again"]
