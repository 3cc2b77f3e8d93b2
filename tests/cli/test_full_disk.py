"""A full disk under a running server, and one with less space than the reserve: what shows it, and when it ends."""

import json
import resource
import shutil
import threading
from pathlib import Path

import httpx
import pytest

from tests.support.server import PATIENCE_SECONDS, ServerProcess

PAUSE_SECONDS = 0.1


def wait_for(client: httpx.Client, status: int) -> None:
    for _ in range(int(PATIENCE_SECONDS / PAUSE_SECONDS)):
        if client.get("/readyz").status_code == status:
            return
        threading.Event().wait(PAUSE_SECONDS)
    raise AssertionError(f"/readyz never said {status}")


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_server_that_cannot_write_is_not_ready(sqlite_url: str, processes: str) -> None:
    with (
        ServerProcess(sqlite_url, "--processes", processes) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        wait_for(client, 200)
        _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, hard))  # each write to a file fails from now on
        wait_for(client, 503)
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/flows").status_code == 200
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_for(client, 200)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_server_that_refuses_new_work_says_so(run, sqlite_url: str, tmp_path: Path, processes: str) -> None:
    """It is ready: running work needs its reports."""
    reserve_gib = (shutil.disk_usage(tmp_path).free >> 30) + 100
    with ServerProcess(
        sqlite_url, "--processes", processes, "--disk-reserve-mib", str(reserve_gib << 10), "--log-format", "human"
    ) as server:
        at = "--server", server.url
        (tmp_path / "f.yaml").write_text("version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n")
        assert run("apply", tmp_path / "f.yaml", *at).exit_code == 0
        refused = run("start", "f", *at)
        assert (refused.exit_code, f"disk_reserve_mib keeps {reserve_gib << 10}" in refused.stderr) == (4, True)
        shown = run("status", *at)
        assert shown.exit_code == 0
        assert "ready:" in shown.stdout
        rows = [line.split() for line in shown.stdout.splitlines()]
        assert ["new", "work:", "refused"] in rows
        (free,) = (row for row in rows if row[:2] == ["free", "space:"])
        assert free[4:] == ["of", "which", f"{reserve_gib:,}.0", "GiB", "are", "kept", "as", "a", "reserve"]
        assert "New work is refused: the disk of the database has " in shown.stderr
        assert "disk_reserve_mib" in json.loads(run("status", "-o", "json", *at).stdout)["newWorkRefused"]
    assert server.log.count("new work is refused: the disk of the database has ") == 1
