"""A full disk under a running server: /readyz reports it, and reports when it is over."""

import resource
import threading

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
