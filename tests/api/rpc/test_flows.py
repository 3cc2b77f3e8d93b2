"""The flow actions: fields, paging, and every refusal."""

import asyncio
import json

import pytest

from flowserver.base.limits import Limits
from flowserver.server import Application
from tests.api.rpc.conftest import ASK, CALL, PASS, WAIT, Rpc, running_rpc
from tests.engine.called_functions import Functions

FIELDS = {
    "Id", "Name", "Description", "Definition", "Type", "RoleArn", "ExecutionMode", "ExternalStorageLocation",
    "CreatedTime", "LastModifiedTime", "ResourceGroupId",
}  # fmt: skip


async def test_creating_describing_updating_deleting(rpc: Rpc) -> None:
    created = await rpc.create_flow("f", RoleArn="acs:ram::1:role/r", ExecutionMode="Express")
    assert set(created) == FIELDS | {"RequestId"}
    assert (created["Name"], created["Definition"], created["Description"]) == ("f", PASS, "d")
    assert (created["Type"], created["RoleArn"], created["ExecutionMode"]) == ("FDL", "acs:ram::1:role/r", "Express")
    assert created["CreatedTime"] == created["LastModifiedTime"]
    described = await rpc.call("DescribeFlow", Name="f")
    assert {**described, "RequestId": ""} == {**created, "RequestId": ""}
    updated = await rpc.call("UpdateFlow", Name="f", Description="new")
    changed = {"Description": "new", "LastModifiedTime": updated["LastModifiedTime"], "RequestId": ""}
    assert {**updated, "RequestId": ""} == {**created, **changed}
    assert set(await rpc.call("DeleteFlow", Name="f")) == {"RequestId"}
    await rpc.refused("DescribeFlow", 404, "FlowNotExists", Name="f")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Definition", WAIT),
        ("Description", "~*+/&=中"),
        ("RoleArn", "r"),
        ("ExternalStorageLocation", "oss://bucket"),
        ("Environment", '{"Variables":[{"Name":"n","Value":"v"}]}'),
    ],
)
async def test_updating_changes_only_the_given_fields(rpc: Rpc, field: str, value: str) -> None:
    created = await rpc.create_flow("f", RoleArn="before", ExternalStorageLocation="before")
    await rpc.call("UpdateFlow", Name="f", **{field: value})
    described = await rpc.call("DescribeFlow", Name="f")
    differ = {name for name in FIELDS | {"Environment"} if described.get(name) != created.get(name)}
    assert differ - {"LastModifiedTime"} == {field}


NO_VARIABLES = [
    json.dumps({"Variables": [variable]})
    for variable in (
        {"Value": "v"},
        {"Name": "", "Value": "v"},
        {"Name": 1, "Value": "v"},
        {"Name": "n", "Value": 1},
        {"Name": "n", "Value": "v", "Description": 1},
    )
]


async def test_an_empty_text_clears_and_an_absent_one_does_not(rpc: Rpc) -> None:
    texts = {"Description": "d", "RoleArn": "r", "ExternalStorageLocation": "oss://bucket"}
    environment = '{"Variables":[{"Name":"n","Value":"v"}]}'
    await rpc.call("CreateFlow", Name="f", Definition=PASS, Type="FDL", **texts, Environment=environment)
    for name, text in texts.items():
        assert (await rpc.call("UpdateFlow", Name="f", **{name: "None"}))[name] == text
        assert (await rpc.call("UpdateFlow", Name="f", **{name: ""}))[name] == ""
        assert (await rpc.call("DescribeFlow", Name="f"))[name] == ""
    assert "Environment" in await rpc.call("UpdateFlow", Name="f", Environment="None")
    cleared = await rpc.call("UpdateFlow", Name="f", Environment="", Definition="", Type="")
    assert "Environment" not in cleared
    assert (cleared["Definition"], cleared["Type"]) == (PASS, "FDL")


async def test_resource_groups(rpc: Rpc) -> None:
    for name, group in (("a", "rg-1"), ("b", ""), ("c", "rg-2"), ("d", "rg-1")):
        assert (await rpc.create_flow(name, ResourceGroupId=group))["ResourceGroupId"] == group
    assert (await rpc.call("DescribeFlow", Name="c"))["ResourceGroupId"] == "rg-2"
    assert await rpc.names("ListFlows", "Flows", ResourceGroupId="rg-1", Limit=1) == [["a"], ["d"]]
    assert await rpc.names("ListFlows", "Flows", ResourceGroupId="rg-3") == [[]]
    assert await rpc.names("ListFlows", "Flows", ResourceGroupId="") == [["a", "b", "c", "d"]]


async def test_environments(rpc: Rpc) -> None:
    variables = {"Variables": [{"Name": "n", "Value": "v", "Description": "中"}]}
    created = await rpc.create_flow("f", Environment='{"Variables":[{"Name":"n","Value":"v","Description":"中"}]}')
    assert created["Environment"] == variables
    for wrong in ("[]", "{", '{"Variables":{}}', '{"Variables":["n"]}', '{"Variables":[{"Name":"n"}]}', *NO_VARIABLES):
        await rpc.refused("UpdateFlow", 400, "InvalidArgument", Name="f", Environment=wrong)


@pytest.mark.parametrize("name", ["a", "_", "A-b_9", "a" * 128])
async def test_valid_names(rpc: Rpc, name: str) -> None:
    assert (await rpc.create_flow(name))["Name"] == name


@pytest.mark.parametrize("name", ["1", "-a", "a/b", "a b", "a.b", "中", "a" * 129, "a\n", "../etc", "a%"])
async def test_invalid_names(rpc: Rpc, name: str) -> None:
    await rpc.refused("CreateFlow", 400, "InvalidArgument", Name=name, Definition=PASS, Type="FDL")
    await rpc.refused("DescribeFlow", 404, "FlowNotExists", Name=name)
    await rpc.refused("UpdateFlow", 404, "FlowNotExists", Name=name, Description="d")
    await rpc.refused("DeleteFlow", 404, "FlowNotExists", Name=name)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"Name": ""}, "MissingRequiredParams"),
        ({"Definition": ""}, "MissingRequiredParams"),
        ({"Type": ""}, "MissingRequiredParams"),
        ({"Type": "fdl"}, "InvalidArgument"),
        ({"ExecutionMode": "Fast"}, "InvalidArgument"),
        ({"Description": "d" * 4097}, "InvalidArgument"),
        ({"Definition": "["}, "InvalidArgument"),
        ({"Definition": "no: flow"}, "InvalidArgument"),
        ({"Definition": "[" * 10_000}, "InvalidArgument"),
        ({"Definition": "a: &a [" + "*a," * 5_000 + "]"}, "InvalidArgument"),
        ({"Definition": PASS + "#" * 262_144}, "InvalidArgument"),
        ({"Definition": "version: v1\ntype: flow\nsteps: .nan"}, "InvalidArgument"),
        ({"Definition": "\x07"}, "InvalidArgument"),
    ],
)
async def test_refused_creations(rpc: Rpc, given: dict[str, str], code: str) -> None:
    parameters = {"Name": "f", "Definition": PASS, "Type": "FDL", **given}
    await rpc.refused("CreateFlow", 400, code, **parameters)
    assert (await rpc.call("ListFlows"))["Flows"] == []


async def test_an_error_in_a_definition_has_its_location(rpc: Rpc) -> None:
    text = PASS + "  - type: pass\n    name: q\n    inputMapings: []\n"
    message = await rpc.refused("CreateFlow", 400, "InvalidArgument", Name="f", Definition=text, Type="FDL")
    assert message.startswith("line 8, column 5: ")


async def test_a_refused_update_changes_nothing(rpc: Rpc) -> None:
    created = await rpc.create_flow("f")
    await rpc.refused("UpdateFlow", 400, "InvalidArgument", Name="f", Description="new", Definition="no")
    await rpc.refused("UpdateFlow", 400, "InvalidArgument", Name="f", Description="new", Type="DAG")
    assert {**await rpc.call("DescribeFlow", Name="f"), "RequestId": ""} == {**created, "RequestId": ""}


async def test_a_taken_name(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    await rpc.refused("CreateFlow", 409, "FlowAlreadyExists", Name="f", Definition=WAIT, Type="FDL")
    assert (await rpc.call("DescribeFlow", Name="f"))["Definition"] == PASS
    await rpc.create_flow("F")


async def test_one_of_two_concurrent_creates_wins(rpc: Rpc) -> None:
    given = {"Name": "f", "Definition": PASS, "Type": "FDL"}
    responses = await asyncio.gather(*(rpc.send("CreateFlow", **given) for _ in range(5)))
    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409, 409]
    assert len((await rpc.call("ListFlows"))["Flows"]) == 1


async def test_a_flow_created_again_is_a_new_flow(rpc: Rpc) -> None:
    first = await rpc.create_flow("f")
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    await rpc.end_of("f", "e")
    await rpc.call("DeleteFlow", Name="f")
    second = await rpc.create_flow("f")
    assert first["Id"] != second["Id"]
    await rpc.refused("DescribeExecution", 404, "ExecutionNotExists", FlowName="f", ExecutionName="e")
    assert (await rpc.call("ListExecutions", FlowName="f"))["Executions"] == []
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")


async def test_a_flow_that_is_deleted_while_it_runs(rpc: Rpc, function: Functions) -> None:
    await rpc.create_flow("f", ASK)
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    call = await function.next_call("s/f")
    await rpc.call("DeleteFlow", Name="f")
    await call.gone.wait()
    gone = {"FlowName": "f", "ExecutionName": "e"}
    for action in ("DescribeExecution", "StopExecution", "GetExecutionHistory"):
        await rpc.refused(action, 404, "FlowNotExists", **gone)
    await rpc.refused("ListExecutions", 404, "FlowNotExists", FlowName="f")
    await rpc.refused("StartExecution", 404, "FlowNotExists", FlowName="f")
    token = call.event["token"]
    await rpc.refused("ReportTaskSucceeded", 400, "TaskAlreadyCompleted", TaskToken=token, Output="{}")


async def test_executions_keep_the_definition_they_started_with(rpc: Rpc, function: Functions) -> None:
    await rpc.create_flow("f", CALL)
    await rpc.call("StartExecution", FlowName="f", ExecutionName="old")
    call = await function.next_call("s/f")
    await rpc.call("UpdateFlow", Name="f", Definition=PASS)
    await rpc.call("StartExecution", FlowName="f", ExecutionName="new")
    call.reply({"a": 1})
    old, new = await rpc.end_of("f", "old"), await rpc.end_of("f", "new")
    assert (old["FlowDefinition"], old["Output"]) == (CALL, '{"a":1}')
    assert (new["FlowDefinition"], new["Output"]) == (PASS, "{}")


@pytest.mark.parametrize("size", [1, 3, 10])
async def test_pages_of_flows(rpc: Rpc, size: int) -> None:
    names = ["B", "_", "a", "a-b", "a_b", "b"]
    for name in reversed(names):
        await rpc.create_flow(name)
    pages = await rpc.names("ListFlows", "Flows", Limit=size)
    assert [name for page in pages for name in page] == names
    assert {len(page) for page in pages[:-1]} <= {size}
    body = await rpc.call("ListFlows", Limit=2)
    assert body["NextToken"] == "a"  # the name that the next page starts with
    assert set(body["Flows"][0]) == FIELDS


async def test_a_token_after_the_last_flow(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    body = await rpc.call("ListFlows", NextToken="z")
    assert body["Flows"] == []
    assert "NextToken" not in body


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "9" * 18])
async def test_pages_of_invalid_sizes(rpc: Rpc, limit: str) -> None:
    await rpc.refused("ListFlows", 400, "InvalidArgument", Limit=limit)


async def test_more_flows_than_a_page_may_have(rpc: Rpc, app: Application) -> None:
    flows = app.state.operations.flows
    for first in (0, 550):  # all at once would exceed the writer's queue
        await asyncio.gather(*(flows.create(f"f{number:04}", PASS) for number in range(first, first + 550)))
    pages = await rpc.names("ListFlows", "Flows")
    assert [len(page) for page in pages] == [60] * 18 + [20]
    assert [name for page in pages for name in page] == [f"f{number:04}" for number in range(1_100)]
    assert len((await rpc.call("ListFlows", Limit=1000))["Flows"]) == 1_000


async def test_the_number_of_flows_is_limited(app: Application) -> None:
    app.state.limits = Limits(flows_max=2)
    async with running_rpc(app) as rpc:
        await rpc.create_flow("a")
        await rpc.create_flow("b")
        await rpc.refused("CreateFlow", 429, "ResourceThrottled", Name="c", Definition=PASS, Type="FDL")
        await rpc.call("DeleteFlow", Name="a")
        await rpc.create_flow("c")
