"""Features of some SDKs only: synchronous executions, host names through a proxy, newer parameters."""

import json
from dataclasses import replace

import pytest

from tests.sdk.client import CLASSIC, SDKS, Access, SdkClient, SdkError, SdkProcess
from tests.sdk.conftest import CALL

FAIL = "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: f, error: Nope, cause: because}\n"

NEW = {"Description": "-", "Type": "FDL"}


@pytest.mark.parametrize("name", [sdk.name for sdk in SDKS if sdk.name != "tea-v3"])  # which is older than the action
def test_synchronous_executions(client_of, name: str, unique: str) -> None:
    client = client_of(name)
    client.call("CreateFlow", Name=unique, Definition=CALL, **NEW)
    ended = client.call("StartSyncExecution", FlowName=unique, ExecutionName="e1", Input='{"text": "~*+ 中"}')
    assert ended["Name"].startswith("e1:")
    assert (ended["Status"], json.loads(ended["Output"])) == ("Succeeded", {"text": "~*+ 中"})
    assert not ended["ErrorCode"]


@pytest.mark.parametrize("name", [sdk.name for sdk in SDKS if sdk.name != "tea-v3"])
def test_synchronous_executions_that_fail(client_of, name: str, unique: str) -> None:
    client = client_of(name)
    client.call("CreateFlow", Name=unique, Definition=FAIL, **NEW)
    ended = client.call("StartSyncExecution", FlowName=unique)
    assert (ended["Status"], ended["ErrorCode"], ended["ErrorMessage"]) == ("Failed", "Nope", "because")


@pytest.mark.parametrize("name", ["tea2", "tea2-async"])
def test_lists_without_documents(client_of, name: str, unique: str) -> None:
    client = client_of(name)
    client.call("CreateFlow", Name=unique, Definition=CALL, **NEW)
    client.call("StartSyncExecution", FlowName=unique, Input='{"a": 1}')
    (execution,) = client.call("ListExecutions", FlowName=unique, MetadataOnly=True)["Executions"]
    assert (execution["Input"], execution["FlowDefinition"], execution["Status"]) == ("", "", "Succeeded")
    (execution,) = client.call("ListExecutions", FlowName=unique, MetadataOnly=False)["Executions"]
    assert (execution["Input"], execution["FlowDefinition"]) == ('{"a": 1}', CALL)


@pytest.mark.parametrize("name", ["tea2", "tea2-async"])
@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("ListExecutions", {"MapRunName": "m"}),
    ],
)
def test_unsupported_parameters(client_of, name: str, action: str, parameters: dict, unique: str) -> None:
    client = client_of(name)
    client.call("CreateFlow", Name=unique, Definition=CALL, **NEW)
    with pytest.raises(SdkError) as refusal:
        client.call(action, FlowName=unique, **parameters)
    assert (refusal.value.code, refusal.value.status) == ("InvalidArgument", 400)
    assert f"the parameter {next(iter(parameters))} of {action} is not supported" in refusal.value.message


@pytest.mark.parametrize("name", ["tea2", "tea2-async"])
def test_environments_and_resource_groups(client_of, name: str, unique: str) -> None:
    client = client_of(name)
    variable = {"Name": "n", "Value": "v", "Description": "d"}
    further = {"Environment": {"Variables": [variable]}, "ResourceGroupId": f"rg-{unique}"}
    created = client.call("CreateFlow", Name=unique, Definition=CALL, **NEW, **further)
    assert created["Environment"] == {"Variables": [variable]}
    (listed,) = client.call("ListFlows", ResourceGroupId=f"rg-{unique}")["Flows"]
    assert (listed["Name"], listed["ResourceGroupId"]) == (unique, f"rg-{unique}")
    client.call("StartExecution", FlowName=unique, ExecutionName="e1")
    described = client.call("DescribeExecution", FlowName=unique, ExecutionName="e1", WaitTimeSeconds=60)
    assert described["Environment"] == {"Variables": [{"Name": "n", "Value": "v"}]}


def test_the_classic_sdks_none_counts_as_absent(client_of, unique: str) -> None:
    client = client_of("classic")
    created = client.call("CreateFlow", Name=unique, Definition=CALL, RoleArn=None, **NEW)
    assert created["RoleArn"] == ""
    client.call("StartExecution", FlowName=unique, ExecutionName="e1", Input=None)
    listed = client.call("ListExecutions", FlowName=unique, NextToken=None, Limit=None, Status=None)
    assert [execution["Name"] for execution in listed["Executions"]] == ["e1"]
    assert client.call("ListFlows", NextToken=None)["Flows"]


@pytest.mark.parametrize("name", ["tea2", "classic", "node"])
def test_an_empty_description_clears_it(client_of, name: str, unique: str) -> None:
    client = client_of(name)
    client.call("CreateFlow", Name=unique, Definition=CALL, **NEW)
    assert not client.call("UpdateFlow", Name=unique, Description="")["Description"]


@pytest.mark.parametrize("servers_name", ["opened", "keyed"])
def test_a_program_that_knows_only_the_original_service(request, servers_name: str, unique: str) -> None:
    """No line changes: HTTP_PROXY redirects requests for the production host to this server."""
    access: Access = request.getfixturevalue(servers_name)
    process = SdkProcess(CLASSIC, {"HTTP_PROXY": f"http://{access.address}"})
    client = SdkClient(process, replace(access, address=None))
    client.call("CreateFlow", Name=unique, Definition=CALL, **NEW)
    client.call("StartExecution", FlowName=unique, ExecutionName="e1", Input='{"a": 1}')
    ended = client.call("DescribeExecution", FlowName=unique, ExecutionName="e1", WaitTimeSeconds=30)
    assert json.loads(ended["Output"]) == {"a": 1}
    process.close()
