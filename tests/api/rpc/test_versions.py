"""The actions of versions and aliases: exact answers, starts with a qualifier, and refusals."""

import json

import pytest

from tests.api.rpc.conftest import PASS, WAIT, Rpc

F = {"FlowName": "f"}
PROD = {**F, "Name": "prod"}


def routes(*pairs: tuple[str, int]) -> str:
    listed = [{"Version": version, "Weight": weight} for version, weight in pairs]
    return json.dumps(listed, separators=(",", ":"))


async def publish(rpc: Rpc, *definitions: str) -> None:
    for number, text in enumerate(definitions, 1):
        await (rpc.create_flow("f", text) if number == 1 else rpc.call("UpdateFlow", Name="f", Definition=text))
        assert (await rpc.call("PublishFlowVersion", **F))["Version"] == str(number)


async def test_versions(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    published = await rpc.call("PublishFlowVersion", **F, Description="d")
    assert set(published) == {"FlowName", "Version", "Description", "CreatedTime", "RequestId"}
    assert (published["FlowName"], published["Version"], published["Description"]) == ("f", "1", "d")
    assert (await rpc.call("PublishFlowVersion", **F, Description="d"))["Version"] == "1"
    assert (await rpc.call("PublishFlowVersion", **F))["Version"] == "2"
    page = await rpc.call("ListFlowVersions", **F, Limit="1")
    assert set(page) == {"FlowVersions", "NextToken", "RequestId"}
    assert set(page["FlowVersions"][0]) == {"Version", "Description", "CreatedTime"}
    assert (page["FlowVersions"][0]["Version"], page["NextToken"]) == ("2", "1")
    last = await rpc.call("ListFlowVersions", **F, NextToken="1")
    assert ([each["Version"] for each in last["FlowVersions"]], "NextToken" in last) == (["1"], False)
    await rpc.call("UpdateFlow", Name="f", Definition=WAIT)
    assert (await rpc.call("DescribeFlow", Name="f", FlowVersion="1"))["Definition"] == PASS
    assert (await rpc.call("DescribeFlow", Name="f", FlowVersion=""))["Definition"] == WAIT
    assert set(await rpc.call("DeleteFlowVersion", **F, FlowVersion="1")) == {"RequestId"}
    for action, name in (("DescribeFlow", "Name"), ("DeleteFlowVersion", "FlowName")):
        await rpc.refused(action, 404, "FlowVersionNotExists", **{name: "f", "FlowVersion": "1"})


async def test_aliases(rpc: Rpc) -> None:
    await publish(rpc, PASS, WAIT)
    created = await rpc.call("CreateFlowAlias", **PROD, RoutingConfigurations=routes(("1", 100)))
    fields = {"Name", "Description", "RoutingConfigurations", "CreatedTime"}
    assert set(created) == {"FlowName", "RequestId", *fields}
    assert created["RoutingConfigurations"] == [{"Version": "1", "Weight": 100}]
    two = [{"Version": "1", "Weight": 90}, {"Version": "2", "Weight": 10}]
    updated = await rpc.call("UpdateFlowAlias", **PROD, RoutingConfigurations=json.dumps(two))
    assert (set(updated), set(updated["Alias"])) == ({"Alias", "RequestId"}, fields)
    assert updated["Alias"]["RoutingConfigurations"] == two
    described = await rpc.call("UpdateFlowAlias", **PROD, Description="d")
    assert (described["Alias"]["Description"], described["Alias"]["RoutingConfigurations"]) == ("d", two)
    assert (await rpc.call("DescribeFlowAlias", **PROD))["Alias"] == described["Alias"]
    assert (await rpc.call("UpdateFlowAlias", **PROD, Description=""))["Alias"]["Description"] == ""
    await rpc.call("CreateFlowAlias", **F, Name="test", RoutingConfigurations='[{"Version": 2}]')
    page = await rpc.call("ListFlowAliases", **F, Limit="1")
    assert (set(page), page["NextToken"]) == ({"Aliases", "NextToken", "RequestId"}, "test")
    assert set(page["Aliases"][0]) == fields
    assert page["Aliases"][0]["RoutingConfigurations"] == [{**each, "Weight": str(each["Weight"])} for each in two]
    assert await rpc.names("ListFlowAliases", "Aliases", **F, Limit=1) == [["prod"], ["test"]]
    assert set(await rpc.call("DeleteFlowAlias", **PROD)) == {"RequestId"}
    for action in ("DescribeFlowAlias", "UpdateFlowAlias", "DeleteFlowAlias"):
        await rpc.refused(action, 404, "FlowAliasNotExists", **PROD)


async def test_starts_with_a_qualifier(rpc: Rpc) -> None:
    await publish(rpc, PASS, WAIT)
    await rpc.call("CreateFlowAlias", **PROD, RoutingConfigurations=routes(("2", 0), ("1", 100)))
    for qualifier, text in (("1", PASS), ("2", WAIT), ("prod", PASS), ("LATEST", WAIT), ("", WAIT)):
        assert (await rpc.call("StartExecution", **F, Qualifier=qualifier))["FlowDefinition"] == text
    assert (await rpc.call("StartSyncExecution", **F, Qualifier="prod"))["Status"] == "Succeeded"
    for qualifier, count in (("1", 3), ("2", 1), ("prod", 2), ("LATEST", 2), ("other", 0), ("", 6)):
        listed = (await rpc.call("ListExecutions", **F, Qualifier=qualifier))["Executions"]
        assert len(listed) == count, qualifier
    assert "Qualifier must be" in await rpc.refused("ListExecutions", 400, "InvalidArgument", **F, Qualifier="1x")
    for action in ("StartExecution", "StartSyncExecution"):
        for qualifier, code in (
            ("3", "FlowVersionNotExists"),
            ("dev", "FlowAliasNotExists"),
            ("a b", "FlowAliasNotExists"),
        ):
            assert qualifier in await rpc.refused(action, 404, code, **F, Qualifier=qualifier)


async def test_a_version_in_use_is_not_deleted(rpc: Rpc) -> None:
    await publish(rpc, PASS, WAIT)
    await rpc.call("CreateFlowAlias", **PROD, RoutingConfigurations=routes(("1", 100)))
    await rpc.call("StartExecution", **F, Qualifier="2")
    for version in ("1", "2"):
        await rpc.refused("DeleteFlowVersion", 409, "FlowVersionInUse", **F, FlowVersion=version)
    await rpc.call("DeleteFlowAlias", **PROD)
    await rpc.call("DeleteFlowVersion", **F, FlowVersion="1")


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ("x", "JSON"),
        ('{"Version": "1"}', "list"),
        ("[1]", "list"),
        ("[]", "one or two"),
        ('[{"Weight": 100}]', "list"),
        ('[{"Version": "LATEST", "Weight": 100}]', "list"),
        ('[{"Version": "1", "Weight": "many"}]', "list"),
        ('[{"Version": "1", "Weight": 99}]', "100"),
        ('[{"Version": "1", "Weight": 50}, {"Version": "1", "Weight": 50}]', "differ"),
    ],
)
async def test_refused_routes(rpc: Rpc, given: str, part: str) -> None:
    await publish(rpc, PASS)
    assert part in await rpc.refused("CreateFlowAlias", 400, "InvalidArgument", **PROD, RoutingConfigurations=given)


async def test_refusals_of_aliases(rpc: Rpc) -> None:
    await publish(rpc, PASS)
    one = {"RoutingConfigurations": routes(("1", 100))}
    for name in ("12", "LATEST", "a b"):
        await rpc.refused("CreateFlowAlias", 400, "InvalidArgument", **F, Name=name, **one)
    await rpc.call("CreateFlowAlias", **PROD, **one)
    await rpc.refused("CreateFlowAlias", 409, "FlowAliasAlreadyExists", **PROD, **one)
    two = {"RoutingConfigurations": routes(("2", 100))}
    await rpc.refused("UpdateFlowAlias", 404, "FlowVersionNotExists", **PROD, **two)
    await rpc.refused("CreateFlowAlias", 400, "MissingRequiredParams", **F, Name="b")
    for action in ("PublishFlowVersion", "ListFlowVersions", "ListFlowAliases"):
        await rpc.refused(action, 404, "FlowNotExists", FlowName="none")


async def test_regions_and_map_runs(rpc: Rpc) -> None:
    regions = (await rpc.call("DescribeRegions", AcceptLanguage="en-US"))["Regions"]["Region"]
    assert [(each["RegionId"], each["LocalName"]) for each in regions] == [("local", "local")]
    for action in ("DescribeMapRun", "UpdateMapRun"):
        message = await rpc.refused(action, 400, "ActionNotSupported", **F, ExecutionName="e", MapRunName="m")
        assert "there are no map runs here" in message
