"""A server without keys answers programs that connect to it directly, and nothing that a proxy forwards."""

import json
import threading

import httpx
import pytest

from tests.support.server import PATIENCE_SECONDS, ServerProcess

REMEDY = "nothing that a proxy forwards; to serve others, create a key: flowserver keys create"
PAGE = {"Accept": "text/html,application/xhtml+xml"}
PAUSE_SECONDS = 0.05

REQUESTS = [
    ("POST", "/?Action=ListFlows", {}),
    ("GET", "/?Action=NoSuchAction", {}),
    ("GET", "/v1/flows", {}),
    ("PUT", "/v1/flows/f", {}),
    ("GET", "/v1/no/such/path", {}),
    ("GET", "/2016-08-15/services/s/functions", {}),
    ("GET", "/2021-04-06/services/s/functions", {}),
    ("GET", "/queues", {}),
    ("PUT", "/topics/t", {}),
    ("GET", "/?AccountMeta", {}),
    ("GET", "/", PAGE),
    ("GET", "/executions/f/e", PAGE),
    ("GET", "/console/main.js", {}),
    ("GET", "/docs", {}),
    ("GET", "/v1/openapi.json", {}),
    ("GET", "/v1/schemas/flow.json", {}),
    ("GET", "/metrics", {}),
]
FORWARDED = [
    {"X-Forwarded-For": "203.0.113.7"},
    {"x-forwarded-for": "127.0.0.1"},
    {"X-Forwarded-Host": "127.0.0.1:8080"},
    {"X-Forwarded-Proto": "https"},
    {"Forwarded": "for=127.0.0.1"},
    {"X-Real-Ip": "127.0.0.1"},
    {"Via": "1.1 caddy"},
    {"Host": "flows.example"},
    {"Host": "10.0.0.5:8080"},
]


@pytest.fixture(params=["1", "2"], ids=["one-process", "two-processes"])
def server(request, sqlite_url):
    with ServerProcess(sqlite_url, "--processes", request.param) as running:
        yield running


def test_no_proxy_reaches_it_until_it_has_a_key(run, server, sqlite_url):
    with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        for method, path, headers in REQUESTS:
            direct = client.request(method, path, headers=headers)
            assert direct.status_code != 403, (path, direct.text)
            for forwarding in FORWARDED:
                [name] = forwarding
                refused = client.request(method, path, headers=headers | forwarding)
                assert refused.status_code == 403, (path, forwarding, refused.text)
                assert REMEDY in refused.text
                assert f"The {name.title()} header" in refused.text
                assert refused.headers.get("connection") != "close"  # a body under way would meet a closed connection
        assert client.get("/healthz", headers={"Via": "1.1 probe"}).status_code == 200

        created = run("keys", "create", "--format", "json", "--database-url", sqlite_url)
        bearer = {"Authorization": f"Bearer {json.loads(created.stdout)['bearerToken']}"}
        for forwarding in FORWARDED:
            assert _closed(client, forwarding).status_code == 401
            for path in ("/v1/flows", "/?Action=ListFlows", "/queues", "/2021-04-06/services/s/functions"):
                answer = client.get(path, headers=bearer | forwarding)
                assert answer.status_code not in (401, 403), answer.text
            assert client.get("/", headers=PAGE | forwarding).status_code == 200


def _closed(client, headers):
    """The answer to a caller without a key; the server looks for keys once a second."""
    for _ in range(int(PATIENCE_SECONDS / PAUSE_SECONDS)):
        answer = client.get("/v1/flows", headers=headers)
        if answer.status_code != 403:
            return answer
        threading.Event().wait(PAUSE_SECONDS)
    raise AssertionError(answer.text)


def test_a_refusal_reaches_a_client_that_is_still_sending(server):
    """What a proxy forwards is refused before its body is read, and the connection goes on."""
    headers = {"X-Forwarded-For": "203.0.113.7"}
    with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        refused = client.put("/v1/flows/f", content=b"x" * 4_000_000, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "AccessDenied")
        assert client.get("/v1/flows").json()["flows"] == []
