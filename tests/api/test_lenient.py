"""Strictness as a setting: answers of RPC and REST to unknown and empty attributes, and stored definitions."""

import httpx
import pytest

from flowserver.server import create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of

DOUBTFUL = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p, nmae: q, inputMappings: }\n"
YAML = {"Content-Type": "text/yaml"}
VALIDATE = "/v1/definitions/validate"
IDS = ["unknown-attribute", "empty-attribute"]


def rpc(action: str, **parameters: str) -> dict[str, str]:
    return {"Action": action, "Version": "2019-03-15", **parameters}


async def severities(client: httpx.AsyncClient, query: str = "") -> tuple[bool, list[str]]:
    """Whether the doubtful definition is valid, and how severe each finding is."""
    report = (await client.post(VALIDATE + query, content=DOUBTFUL, headers=YAML)).json()
    assert [found["id"] for found in report["diagnostics"]] == IDS
    assert report["diagnostics"][0]["hint"] == "did you mean `name`?"
    return report["valid"], [found["severity"] for found in report["diagnostics"]]


async def test_a_strict_server_refuses(client: httpx.AsyncClient) -> None:
    refused = await client.put("/v1/flows/f", content=DOUBTFUL, headers=YAML)
    assert refused.status_code == 400
    assert [found["id"] for found in refused.json()["diagnostics"]] == IDS
    created = await client.post("/", data=rpc("CreateFlow", Name="f", Type="FDL", Definition=DOUBTFUL))
    assert (created.status_code, created.json()["Code"]) == (400, "InvalidArgument")
    assert await severities(client) == (False, ["error", "error"])


@pytest.mark.parametrize("lenient", [False, True])
async def test_one_check_may_be_of_either_kind(sqlite_url: str, lenient: bool) -> None:
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, lenient=lenient))
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert await severities(client, "?lenient=true") == (True, ["warning", "warning"])
        assert await severities(client, "?lenient=false") == (False, ["error", "error"])
        assert (await severities(client))[0] is lenient
        assert (await client.post(f"{VALIDATE}?lenient=1.5", content=DOUBTFUL, headers=YAML)).status_code == 400


async def test_a_strict_server_runs_what_a_lenient_server_accepted(sqlite_url: str) -> None:
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, lenient=True))
    async with app.router.lifespan_context(app), client_of(app) as client:
        assert (await client.put("/v1/flows/f", content=DOUBTFUL, headers=YAML)).status_code == 201
        created = await client.post("/", data=rpc("CreateFlow", Name="g", Type="FDL", Definition=DOUBTFUL))
        assert (created.status_code, created.json()["Definition"]) == (200, DOUBTFUL)
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0))
    async with app.router.lifespan_context(app), client_of(app) as client:
        for flow in ("f", "g"):
            started = await client.post(f"/v1/flows/{flow}/executions?wait=20", json={"input": {"n": 1}})
            assert (started.json()["status"], started.json()["output"]) == ("Succeeded", {})
        changed = await client.patch("/v1/flows/f", json={"description": "still there"})
        assert changed.status_code == 200
        assert (await client.patch("/v1/flows/f", json={"definition": DOUBTFUL})).status_code == 400
