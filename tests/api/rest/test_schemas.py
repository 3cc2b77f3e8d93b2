"""The JSON Schemas of a server, for editors."""

import httpx

from flowserver.base.limits import Limits
from flowserver.editing.flow_schema import flow_schema
from flowserver.editing.flow_test_schema import flow_test_schema


async def test_they_are_served(client: httpx.AsyncClient) -> None:
    for path, schema in (("flow", flow_schema), ("flowtest", flow_test_schema)):
        response = await client.get(f"/v1/schemas/{path}.json")
        assert response.headers["content-type"] == "application/schema+json"
        assert response.json() == schema(Limits())


async def test_they_need_no_key(token: str, client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/schemas/flow.json")).status_code == 200
    assert (await client.get("/v1/flows")).status_code == 401
