"""`flowserver invocations`: a parked invocation is restarted or stopped, or the reason is reported."""

import httpx
import pytest

from flowserver.store.invocations.parking import park_invocation
from flowserver.store.invocations.rows import insert_invocations
from flowserver.store.sql.database import Database
from tests.cli.conftest import one_line
from tests.store.rows import invocation_row
from tests.support.server import ServerProcess


@pytest.fixture
def parked(tmp_path):
    """A server with two parked invocations."""
    url = f"sqlite:///{tmp_path}/flows.db"
    with ServerProcess(url) as server:
        httpx.get(f"{server.url}/healthz", trust_env=False).raise_for_status()
        database = Database(url)
        with database.write() as connection:
            for key in ("a", "b"):
                insert_invocations(connection, [invocation_row(key, invocation_id=f"id-{key}")])
                park_invocation(connection, key, "node-1", "a bug")
        database.close()
        yield server


def test_restarted_or_stopped(run, parked):
    result = run("invocations", "restart", "s", "f", "id-a", "--server", parked.url)
    assert (result.exit_code, result.stdout) == (0, "restarted s/f id-a\n")
    again = run("invocations", "restart", "s", "f", "id-a", "--server", parked.url)
    assert again.exit_code == 5
    assert one_line(again) == "flowserver: invocation 'id-a' of function 'f' is not parked (InvocationNotParked)"
    result = run("invocations", "stop", "s", "f", "id-b", "--server", parked.url)
    assert (result.exit_code, result.stdout) == (0, "stopped s/f id-b\n")
