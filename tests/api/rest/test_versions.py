"""Versions and aliases: published, listed, started, changed, deleted."""

import httpx

from tests.api.rest.conftest import PASS, WAIT, assert_problem

YAML = {"Content-Type": "application/yaml"}
SECOND = PASS.replace("name: p", "name: second")


async def put_flow(client: httpx.AsyncClient, definition: str, name: str = "f") -> httpx.Response:
    response = await client.put(f"/v1/flows/{name}", content=definition, headers=YAML)
    assert response.is_success, response.text
    return response


async def publish(client: httpx.AsyncClient, *definitions: str) -> None:
    """Publish each, from version 1 on."""
    for number, definition in enumerate(definitions, 1):
        await put_flow(client, definition)
        response = await client.post("/v1/flows/f/versions")
        assert (response.status_code, response.json()["version"]) == (201, number), response.text


async def start(client: httpx.AsyncClient, **body: object) -> dict:
    response = await client.post("/v1/flows/f/executions", json=body)
    assert response.status_code == 201, response.text
    return response.json()


async def test_a_start_runs_the_version_that_it_names(client: httpx.AsyncClient) -> None:
    await publish(client, PASS, SECOND)
    await put_flow(client, WAIT)
    first = await start(client, qualifier="1", name="one")
    assert (first["version"], first["alias"], first["definition"]) == (1, None, PASS)
    assert (await client.get("/v1/flows/f/executions/one")).json()["version"] == 1
    second = await start(client, qualifier="2")
    assert (second["version"], second["definition"]) == (2, SECOND)
    for qualifier in (None, "LATEST"):
        own = await start(client, qualifier=qualifier)
        assert (own["version"], own["alias"], own["definition"]) == (None, None, WAIT)
    listed = (await client.get("/v1/flows/f/executions")).json()["executions"]
    assert sorted(each["version"] or 0 for each in listed) == [0, 0, 1, 2]


async def test_publishing(client: httpx.AsyncClient) -> None:
    await put_flow(client, PASS)
    response = await client.post("/v1/flows/f/versions", json={"description": "first"})
    version = response.json()
    assert (response.status_code, response.headers["location"]) == (201, "/v1/flows/f/versions/1")
    assert (version["version"], version["description"], version["definition"]) == (1, "first", PASS)
    assert (await client.get("/v1/flows/f/versions/1")).json() == version
    repeated = await client.post("/v1/flows/f/versions", json={"description": "first"})
    assert (repeated.status_code, repeated.json()) == (200, version)
    described = await client.post("/v1/flows/f/versions", json={"description": "second"})
    assert (described.status_code, described.json()["version"]) == (201, 2)
    etag = (await put_flow(client, SECOND)).headers["etag"]
    await put_flow(client, WAIT)
    changed = await client.post("/v1/flows/f/versions", headers={"If-Match": etag})
    assert_problem(changed, 412, "PreconditionFailed")


async def test_pages_of_versions(client: httpx.AsyncClient) -> None:
    await publish(client, PASS, SECOND, WAIT)
    page = (await client.get("/v1/flows/f/versions", params={"limit": 2})).json()
    assert ([each["version"] for each in page["versions"]], page["nextToken"]) == ([3, 2], "1")
    assert "definition" not in page["versions"][0]
    last = (await client.get("/v1/flows/f/versions", params={"nextToken": "1"})).json()
    assert ([each["version"] for each in last["versions"]], last["nextToken"]) == ([1], None)
    wrong = await client.get("/v1/flows/f/versions", params={"nextToken": "x"})
    assert_problem(wrong, 400, "InvalidArgument")


async def test_deleting_a_version(client: httpx.AsyncClient) -> None:
    await publish(client, PASS, WAIT, SECOND)
    await client.put(
        "/v1/flows/f/aliases/prod", json={"routes": [{"version": 1, "weight": 90}, {"version": 3, "weight": 10}]}
    )
    await start(client, qualifier="2", name="runs")
    for version, user in (("1", "alias prod"), ("3", "alias prod"), ("2", "execution runs")):
        problem = assert_problem(await client.delete(f"/v1/flows/f/versions/{version}"), 409, "FlowVersionInUse")
        assert user in problem["detail"]
    assert (await client.post("/v1/flows/f/executions/runs/stop")).status_code == 200
    assert (await client.delete("/v1/flows/f/aliases/prod")).status_code == 204
    for version in ("3", "2"):
        assert (await client.delete(f"/v1/flows/f/versions/{version}")).status_code == 204
        assert_problem(await client.delete(f"/v1/flows/f/versions/{version}"), 404, "FlowVersionNotExists")
    assert (await client.get("/v1/flows/f/executions/runs")).json()["definition"] == WAIT
    again = await client.post("/v1/flows/f/versions")
    assert (again.status_code, again.json()["version"]) == (201, 4)  # numbers are not reused


async def test_a_start_runs_the_version_that_an_alias_selects(client: httpx.AsyncClient) -> None:
    await publish(client, PASS, SECOND)
    created = await client.post("/v1/flows/f/aliases", json={"name": "prod", "routes": [{"version": 1}]})
    assert (created.status_code, created.headers["location"]) == (201, "/v1/flows/f/aliases/prod")
    assert created.json()["routes"] == [{"version": 1, "weight": 100}]
    execution = await start(client, qualifier="prod")
    assert (execution["version"], execution["alias"], execution["definition"]) == (1, "prod", PASS)
    for old, new, version in ((100, 0, 1), (0, 100, 2)):
        routes = [{"version": 1, "weight": old}, {"version": 2, "weight": new}]
        changed = await client.patch("/v1/flows/f/aliases/prod", json={"routes": routes})
        assert (changed.status_code, changed.json()["routes"]) == (200, routes)
        assert {(await start(client, qualifier="prod"))["version"] for _ in range(8)} == {version}


async def test_changes_of_an_alias_do_not_overwrite_each_other(client: httpx.AsyncClient) -> None:
    await publish(client, PASS, SECOND)
    alias, one, two = "/v1/flows/f/aliases/prod", [{"version": 1}], [{"version": 2}]
    new = await client.put(alias, json={"routes": one, "description": "d"}, headers={"If-None-Match": "*"})
    assert new.status_code == 201
    assert_problem(
        await client.put(alias, json={"routes": one}, headers={"If-None-Match": "*"}), 412, "PreconditionFailed"
    )
    etag = (await client.get(alias)).headers["etag"]
    assert etag == new.headers["etag"]
    seen = {"If-Match": etag}
    changed = await client.put(alias, json={"routes": two}, headers=seen)
    assert (changed.status_code, changed.json()["description"]) == (200, "d")
    assert_problem(await client.put(alias, json={"routes": one}, headers=seen), 412, "PreconditionFailed")
    assert_problem(await client.patch(alias, json={"routes": one}, headers=seen), 412, "PreconditionFailed")
    assert_problem(await client.delete(alias, headers=seen), 412, "PreconditionFailed")
    assert (await client.delete(alias, headers={"If-Match": changed.headers["etag"]})).status_code == 204


async def test_pages_of_aliases(client: httpx.AsyncClient) -> None:
    await publish(client, PASS)
    for name in ("b", "c", "a"):
        await client.put(f"/v1/flows/f/aliases/{name}", json={"routes": [{"version": 1}]})
    page = (await client.get("/v1/flows/f/aliases", params={"limit": 2})).json()
    assert ([each["name"] for each in page["aliases"]], page["nextToken"]) == (["a", "b"], "c")
    last = (await client.get("/v1/flows/f/aliases", params={"nextToken": "c"})).json()
    assert ([each["name"] for each in last["aliases"]], last["nextToken"]) == (["c"], None)


async def test_versions_that_do_not_exist(client: httpx.AsyncClient) -> None:
    assert_problem(await client.post("/v1/flows/f/versions"), 404, "FlowNotExists")
    await publish(client, PASS)
    routes = {"routes": [{"version": 2}]}
    for response, code in (
        (await client.get("/v1/flows/f/versions/2"), "FlowVersionNotExists"),
        (await client.get("/v1/flows/f/versions/01"), "FlowVersionNotExists"),
        (await client.get("/v1/flows/f/aliases/prod"), "FlowAliasNotExists"),
        (await client.patch("/v1/flows/f/aliases/prod", json=routes), "FlowAliasNotExists"),
        (await client.delete("/v1/flows/f/aliases/prod"), "FlowAliasNotExists"),
        (await client.put("/v1/flows/f/aliases/prod", json=routes), "FlowVersionNotExists"),
        (await client.post("/v1/flows/f/executions", json={"qualifier": "2"}), "FlowVersionNotExists"),
        (await client.post("/v1/flows/f/executions", json={"qualifier": "0"}), "FlowVersionNotExists"),
        (await client.post("/v1/flows/f/executions", json={"qualifier": "prod"}), "FlowAliasNotExists"),
    ):
        assert_problem(response, 404, code)
    assert (await client.get("/v1/flows/f/executions")).json()["executions"] == []
    for response in (
        await client.get("/v1/flows/f/versions/x"),
        await client.delete("/v1/flows/f/versions/%C2%84"),
        await client.get("/v1/flows/f/aliases/1"),
        await client.post("/v1/flows/f/executions", json={"qualifier": "a b"}),
    ):
        assert "must" in assert_problem(response, 400, "InvalidArgument")["detail"]


async def test_refused_requests(client: httpx.AsyncClient) -> None:
    await publish(client, PASS, SECOND)
    one = [{"version": 1}]
    for body, part in (
        ({"name": "LATEST", "routes": one}, "LATEST"),
        ({"name": "12", "routes": one}, "name"),
        ({"name": "a", "routes": [{"version": 1, "weight": 60}, {"version": 2, "weight": 50}]}, "100"),
        ({"name": "a", "routes": [{"version": 1, "weight": 50}, {"version": 1, "weight": 50}]}, "differ"),
        ({"name": "a", "routes": []}, "routes"),
    ):
        problem = assert_problem(await client.post("/v1/flows/f/aliases", json=body), 400, "InvalidArgument")
        assert part in problem["detail"]
    await client.post("/v1/flows/f/aliases", json={"name": "a", "routes": one})
    again = await client.post("/v1/flows/f/aliases", json={"name": "a", "routes": one})
    assert_problem(again, 409, "FlowAliasAlreadyExists")
    assert_problem(await client.patch("/v1/flows/f/aliases/a", json={}), 400, "InvalidArgument")


async def test_a_named_start_with_another_qualifier_is_a_conflict(client: httpx.AsyncClient) -> None:
    await publish(client, WAIT, WAIT + "# again\n")
    await client.put("/v1/flows/f/aliases/prod", json={"routes": [{"version": 1}]})
    await start(client, name="run", qualifier="prod")
    same = await client.post("/v1/flows/f/executions", json={"name": "run", "qualifier": "prod"})
    assert (same.status_code, same.json()["version"]) == (200, 1)
    for other in ("1", "2", "LATEST", None):
        conflict = await client.post("/v1/flows/f/executions", json={"name": "run", "qualifier": other})
        assert "prod" in assert_problem(conflict, 409, "ExecutionAlreadyExists")["detail"]


async def test_a_new_flow_of_the_name_has_no_versions(client: httpx.AsyncClient) -> None:
    await publish(client, PASS)
    await client.put("/v1/flows/f/aliases/prod", json={"routes": [{"version": 1}]})
    assert (await client.delete("/v1/flows/f")).status_code == 204
    await put_flow(client, PASS)
    assert (await client.get("/v1/flows/f/versions")).json()["versions"] == []
    assert (await client.get("/v1/flows/f/aliases")).json()["aliases"] == []
    assert (await client.post("/v1/flows/f/versions")).json()["version"] == 1
