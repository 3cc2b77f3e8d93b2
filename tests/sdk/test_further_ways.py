"""What only some SDKs can: synchronous executions, host names through a proxy, newer parameters."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.sdk.client import CLASSIC, SDKS, Access, Sdk, SdkClient, SdkProcess
from tests.sdk.conftest import CALL

FAIL = "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: f, error: Nope, cause: because}\n"

BY_NAME = {sdk.name: sdk for sdk in SDKS}
NEW = {"Description": "-", "Type": "FDL"}


@pytest.fixture
def client_of(process_of: Callable[[Sdk], SdkProcess], keyed: Access) -> Callable[[str], SdkClient]:
    """A client of the server with keys, by the SDK's name."""
    return lambda name: SdkClient(process_of(BY_NAME[name]), keyed)


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


@pytest.mark.parametrize("servers_name", ["opened", "keyed"])
def test_a_program_that_knows_the_service_only(request, servers_name: str, unique: str) -> None:
    """Not a line changes: HTTP_PROXY leads what goes to the production host name to this server."""
    access: Access = request.getfixturevalue(servers_name)
    process = SdkProcess(CLASSIC, {"HTTP_PROXY": f"http://{access.address}"})
    client = SdkClient(process, replace(access, address=None))
    client.call("CreateFlow", Name=unique, Definition=CALL, **NEW)
    client.call("StartExecution", FlowName=unique, ExecutionName="e1", Input='{"a": 1}')
    ended = client.call("DescribeExecution", FlowName=unique, ExecutionName="e1", WaitTimeSeconds=30)
    assert json.loads(ended["Output"]) == {"a": 1}
    process.close()
