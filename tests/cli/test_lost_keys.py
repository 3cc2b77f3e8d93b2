"""A server that listens beyond loopback and loses its keys: over HTTP, with one process and with two."""

import json
import threading

import httpx
import pytest
from sqlalchemy import delete

from flowserver.store.schema.tables import access_keys, secrets
from tests.support.server import PATIENCE_SECONDS, ServerProcess

PAUSE_SECONDS = 0.05
ACTION = {"Action": "ListFlows"}


def first_of(client: httpx.Client, path: str, status: int, **options: object) -> httpx.Response:
    """The first answer of that status; the server looks for keys once a second. No other answer accepts the caller."""
    for _ in range(int(PATIENCE_SECONDS / PAUSE_SECONDS)):
        response = client.get(path, **options)
        if response.status_code == status:
            return response
        assert response.status_code >= 400, response.text
        threading.Event().wait(PAUSE_SECONDS)
    raise AssertionError(response.text)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_it_stays_closed_and_a_new_key_opens_it_to_its_holder(run, database, database_url, processes):
    run("keys", "create", "--database-url", database_url)
    with (
        ServerProcess(database_url, "--host", "0.0.0.0", "--processes", processes) as server,
        httpx.Client(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client,
    ):
        assert client.get("/v1/flows").status_code == 401
        assert client.get("/", params=ACTION).status_code == 400
        with database.write() as connection:
            connection.execute(delete(access_keys))
            connection.execute(delete(secrets))
        assert "flowserver keys create" in first_of(client, "/v1/flows", 403).json()["detail"]
        assert "flowserver keys create" in first_of(client, "/", 403, params=ACTION).json()["Message"]
        created = run("keys", "create", "--format", "json", "--database-url", database_url)
        bearer = {"Authorization": f"Bearer {json.loads(created.stdout)['bearerToken']}"}
        assert first_of(client, "/v1/flows", 200, headers=bearer).json()["flows"] == []
        assert first_of(client, "/", 200, params=ACTION, headers=bearer).json()["Flows"] == []
        assert client.get("/v1/flows").status_code == 401
        assert client.get("/", params=ACTION).status_code == 400
    with ServerProcess(database_url, "--host", "0.0.0.0", "--processes", processes) as server:
        assert "with keys only" in server.log
