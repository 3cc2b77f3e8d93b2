"""Versions and aliases through the SDK that supports them: tea, release 2."""

import pytest

from tests.sdk.client import SdkError
from tests.sdk.conftest import CALL

NEW = {"Type": "FDL", "Description": "d"}


@pytest.mark.parametrize("name", ["tea2", "tea2-async"])
def test_versions_and_aliases(client_of, name: str, unique: str) -> None:
    client = client_of(name)
    flow = {"FlowName": unique}
    client.call("CreateFlow", Name=unique, Definition=CALL, **NEW)
    first = client.call("PublishFlowVersion", **flow, Description="first")
    assert (first["FlowName"], first["Version"], first["Description"]) == (unique, "1", "first")
    second = CALL + "# second\n"
    client.call("UpdateFlow", Name=unique, Definition=second)
    assert client.call("PublishFlowVersion", **flow)["Version"] == "2"
    listed = client.call("ListFlowVersions", **flow, Limit="10")
    assert [each["Version"] for each in listed["FlowVersions"]] == ["2", "1"]
    assert client.call("DescribeFlow", Name=unique, FlowVersion="1")["Definition"] == CALL

    alias = {**flow, "Name": "prod"}
    two = [{"Version": "1", "Weight": 90}, {"Version": "2", "Weight": 10}]
    created = client.call("CreateFlowAlias", **alias, RoutingConfigurations=two)
    assert (created["Name"], created["RoutingConfigurations"]) == ("prod", two)
    one = [{"Version": "1", "Weight": 100}]
    updated = client.call("UpdateFlowAlias", **alias, RoutingConfigurations=one, Description="d")
    assert updated["Alias"]["RoutingConfigurations"] == one
    assert client.call("DescribeFlowAlias", **alias)["Alias"] == updated["Alias"]
    (shown,) = client.call("ListFlowAliases", **flow)["Aliases"]
    assert shown["RoutingConfigurations"] == [{"Version": "1", "Weight": "100"}]

    assert client.call("StartExecution", **flow, Qualifier="prod")["FlowDefinition"] == CALL
    assert client.call("StartSyncExecution", **flow, Qualifier="2", Input='{"a": 1}')["Output"] == '{"a":1}'
    with pytest.raises(SdkError) as refused:
        client.call("DeleteFlowVersion", **flow, FlowVersion="1")
    assert (refused.value.code, refused.value.status) == ("FlowVersionInUse", 409)
    assert client.call("DeleteFlowAlias", **alias)["RequestId"]
    assert client.call("DeleteFlowVersion", **flow, FlowVersion="2")["RequestId"]


@pytest.mark.parametrize("name", ["tea2", "tea2-async"])
def test_regions_and_map_runs(client_of, name: str, unique: str) -> None:
    client = client_of(name)
    (region,) = client.call("DescribeRegions", AcceptLanguage="en-US")["Regions"]["Region"]
    assert (region["RegionId"], region["LocalName"]) == ("local", "local")
    for action in ("DescribeMapRun", "UpdateMapRun"):
        with pytest.raises(SdkError) as refused:
            client.call(action, FlowName=unique, ExecutionName="e", MapRunName="m")
        assert (refused.value.code, refused.value.status) == ("ActionNotSupported", 400)
        assert "there are no map runs here" in refused.value.message
