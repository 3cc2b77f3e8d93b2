"""A disk that is almost full: new work is refused, running work ends, and space opens the door again."""

from pathlib import Path

import httpx
import pytest

from flowserver.engine.disk_watch import DiskWatch
from flowserver.engine.schedules.loop import ScheduleLoop
from flowserver.operations.queues import OutgoingMessage, QueueAttributes
from flowserver.server import Application
from flowserver.store.integrity.disk_reserve import MEASURED_SECONDS, DiskAlmostFull, DiskReserve
from tests.api.rest.conftest import PASS, WAIT

MIB = 2**20


class Disk:
    """A disk whose free space the test sets, and the clock of its measurements."""

    def __init__(self) -> None:
        self.free = 200 * MIB
        self.seconds = 0.0
        self.measured = 0

    def reserve(self, file: Path | None = Path("data/x.db"), bytes_min: int = 128 * MIB) -> DiskReserve:
        return DiskReserve(file, bytes_min, self.measure, lambda: self.seconds)

    def becomes(self, free: int) -> None:
        """Set the free bytes, after the last measurement has become old."""
        self.free = free
        self.seconds += MEASURED_SECONDS

    def measure(self, folder: Path) -> int:
        self.measured += 1
        return self.free


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
        "new work is accepted again: the disk of the database has 136 MiB left",
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


async def test_new_work_is_refused_and_running_work_ends(
    client: httpx.AsyncClient, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, operations, disk = app.state.engine, app.state.operations, Disk()
    monkeypatch.setattr(engine.disk, "_measure", disk.measure)
    monkeypatch.setattr(engine.disk, "_now", lambda: disk.seconds)
    disk.seconds = engine.disk._until
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
