"""The execution actions: fields, names, long polls, paging, histories, and every refusal."""

import asyncio
import json
import re

import pytest

from flowserver.server import create_app
from flowserver.settings import Settings
from tests.api.rpc.conftest import ASK, CALL, PASS, WAIT, Rpc, fault, running_rpc
from tests.engine.called_functions import Functions
from tests.engine.nodes import definition

FIELDS = {"Name", "FlowName", "FlowDefinition", "Input", "Output", "Status", "StartedTime", "StoppedTime"}
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
NONE = {"FlowName": "none", "ExecutionName": "e"}
FAIL = definition("- {type: fail, name: f, error: Own, cause: because}")


async def test_a_byte_order_mark_before_an_input_is_skipped(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    started = await rpc.call("StartExecution", FlowName="f", ExecutionName="marked", Input='\ufeff{"n": 1}')
    assert started["Input"] == '{"n": 1}'


async def test_starting_and_describing(rpc: Rpc) -> None:
    await rpc.create_flow("f", WAIT)
    started = await rpc.call("StartExecution", FlowName="f", ExecutionName="e", Input='{"k": "v 1"}')
    assert set(started) == FIELDS | {"RequestId"}
    assert (started["Name"], started["FlowName"], started["FlowDefinition"]) == ("e", "f", WAIT)
    assert (started["Input"], started["Output"], started["StoppedTime"]) == ('{"k": "v 1"}', "", "")
    assert started["Status"] == "Running"
    assert re.fullmatch(TIME, started["StartedTime"])
    described = await rpc.call("DescribeExecution", FlowName="f", ExecutionName="e")
    assert {**described, "RequestId": ""} == {**started, "RequestId": ""}


async def test_a_missing_name_is_generated(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    names = [(await rpc.call("StartExecution", FlowName="f"))["Name"] for _ in range(2)]
    assert all(re.fullmatch(UUID, name) for name in names)
    assert len(set(names)) == 2


async def test_an_end_is_shown(rpc: Rpc, function: Functions) -> None:
    await rpc.create_flow("f", CALL)
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    (await function.next_call("s/f")).reply({"r": 10**20})
    ended = await rpc.end_of("f", "e")
    assert (ended["Status"], ended["Output"]) == ("Succeeded", '{"r":100000000000000000000}')
    assert re.fullmatch(TIME, ended["StoppedTime"])
    await rpc.create_flow("g", FAIL)
    await rpc.call("StartExecution", FlowName="g", ExecutionName="e")
    assert (await rpc.end_of("g", "e"))["Status"] == "Failed"


async def test_a_running_execution_holds_its_name(rpc: Rpc) -> None:
    await rpc.create_flow("f", WAIT)
    first = await rpc.call("StartExecution", FlowName="f", ExecutionName="e", Input='{"n":1}')
    again = await rpc.call("StartExecution", FlowName="f", ExecutionName="e", Input='{"n":2}')
    assert {**again, "RequestId": ""} == {**first, "RequestId": ""}
    assert len((await rpc.call("ListExecutions", FlowName="f"))["Executions"]) == 1
    await rpc.create_flow("g", WAIT)
    await rpc.call("StartExecution", FlowName="g", ExecutionName="e")  # names are unique per flow


async def test_starts_of_one_name_at_once_start_one(rpc: Rpc, function: Functions) -> None:
    await rpc.create_flow("f", CALL)
    starts = [rpc.call("StartExecution", FlowName="f", ExecutionName="e") for _ in range(5)]
    assert len({body["StartedTime"] for body in await asyncio.gather(*starts)}) == 1
    (await function.next_call("s/f")).reply({})
    await rpc.end_of("f", "e")
    assert len(function.calls) == 1


@pytest.mark.parametrize("text", [PASS, FAIL])
async def test_an_ended_execution_keeps_its_name(rpc: Rpc, text: str) -> None:
    await rpc.create_flow("f", text)
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    await rpc.end_of("f", "e")
    await rpc.refused("StartExecution", 400, "ExecutionAlreadyExists", FlowName="f", ExecutionName="e")


async def test_stopping(rpc: Rpc) -> None:
    await rpc.create_flow("f", WAIT)
    name = {"FlowName": "f", "ExecutionName": "e"}
    await rpc.call("StartExecution", **name)
    stopped = await rpc.call("StopExecution", **name, Error="Enough", Cause="of it")
    assert set(stopped) == FIELDS | {"RoleArn", "RequestId"}
    assert stopped.pop("RoleArn") == ""
    assert stopped["Status"] == "Stopped"
    assert re.fullmatch(TIME, stopped["StoppedTime"])
    assert {**await rpc.call("DescribeExecution", **name), "RequestId": ""} == {**stopped, "RequestId": ""}
    await rpc.refused("StopExecution", 400, "ExecutionAlreadyCompleted", **name)
    [*_, last] = (await rpc.call("GetExecutionHistory", **name))["Events"]
    assert (last["Type"], json.loads(last["EventDetail"])) == (
        "ExecutionStopped",
        {"error": "Enough", "cause": "of it"},
    )


@pytest.mark.parametrize(
    ("action", "parameters", "status", "code"),
    [
        ("StartExecution", {}, 400, "MissingRequiredParams"),
        ("StartExecution", {"FlowName": "none"}, 404, "FlowNotExists"),
        ("StartExecution", {"FlowName": "f", "ExecutionName": "1"}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "ExecutionName": "a:b"}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "ExecutionName": "a" * 129}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": "[]"}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": "null"}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": "{"}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": '{"a":NaN}'}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": '{"a":1e999}'}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": '{"a":"\\ud800"}'}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": '{"a":' + "[" * 10_000}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": '{"a":"' + "x" * 262_144 + '"}'}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "Input": '{"a":' + "9" * 5_000 + "}"}, 400, "InvalidArgument"),
        ("StartExecution", {"FlowName": "f", "CallbackFnFTaskToken": "forged"}, 400, "InvalidArgument"),
        ("StartSyncExecution", {"FlowName": "none"}, 404, "FlowNotExists"),
        ("StartSyncExecution", {"FlowName": "f", "ExecutionName": "a:b"}, 400, "InvalidArgument"),
        ("StartSyncExecution", {"FlowName": "f", "Input": "1"}, 400, "InvalidArgument"),
        ("StopExecution", {"FlowName": "f"}, 400, "MissingRequiredParams"),
        ("StopExecution", NONE, 404, "FlowNotExists"),
        ("StopExecution", NONE | {"FlowName": "f"}, 404, "ExecutionNotExists"),
        ("StopExecution", {"FlowName": "f", "ExecutionName": "e", "Error": "E" * 129}, 400, "InvalidArgument"),
        ("StopExecution", {"FlowName": "f", "ExecutionName": "e", "Cause": "C" * 4097}, 400, "InvalidArgument"),
        ("DescribeExecution", {"ExecutionName": "e"}, 400, "MissingRequiredParams"),
        ("DescribeExecution", NONE, 404, "FlowNotExists"),
        ("DescribeExecution", NONE | {"FlowName": "f"}, 404, "ExecutionNotExists"),
        ("DescribeExecution", {"FlowName": "f", "ExecutionName": "e", "WaitTimeSeconds": 61}, 400, "InvalidArgument"),
        ("DescribeExecution", {"FlowName": "f", "ExecutionName": "e", "WaitTimeSeconds": -1}, 400, "InvalidArgument"),
        ("ListExecutions", {}, 400, "MissingRequiredParams"),
        ("ListExecutions", {"FlowName": "none"}, 404, "FlowNotExists"),
        ("ListExecutions", {"FlowName": "f", "Status": "running"}, 400, "InvalidArgument"),
        ("ListExecutions", {"FlowName": "f", "Limit": 101}, 400, "InvalidArgument"),
        ("ListExecutions", {"FlowName": "f", "Limit": 0}, 400, "InvalidArgument"),
        ("ListExecutions", {"FlowName": "f", "StartedTimeBegin": "yesterday"}, 400, "InvalidArgument"),
        ("ListExecutions", {"FlowName": "f", "StartedTimeEnd": "2026-01-01"}, 400, "InvalidArgument"),
        ("ListExecutions", {"FlowName": "f", "StartedTimeEnd": "2026-01-01T00:00:00"}, 400, "InvalidArgument"),
        ("GetExecutionHistory", {"FlowName": "f"}, 400, "MissingRequiredParams"),
        ("GetExecutionHistory", NONE, 404, "FlowNotExists"),
        ("GetExecutionHistory", NONE | {"FlowName": "f"}, 404, "ExecutionNotExists"),
        ("GetExecutionHistory", {"FlowName": "f", "ExecutionName": "e", "NextToken": "x"}, 400, "InvalidArgument"),
        ("GetExecutionHistory", {"FlowName": "f", "ExecutionName": "e", "NextToken": "-1"}, 400, "InvalidArgument"),
        ("GetExecutionHistory", {"FlowName": "f", "ExecutionName": "e", "NextToken": "9" * 30}, 400, "InvalidArgument"),
        ("GetExecutionHistory", {"FlowName": "f", "ExecutionName": "e", "Limit": 1001}, 400, "InvalidArgument"),
    ],
)
async def test_refusals(rpc: Rpc, action: str, parameters: dict, status: int, code: str) -> None:
    await rpc.create_flow("f")
    fault(await rpc.send(action, **parameters), status, code)
    assert (await rpc.call("ListExecutions", FlowName="f"))["Executions"] == []


# Waiting


async def test_a_long_poll_answers_at_the_end(rpc: Rpc, function: Functions) -> None:
    await rpc.create_flow("f", CALL)
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    call = await function.next_call("s/f")
    polls = [asyncio.create_task(rpc.end_of("f", "e")) for _ in range(3)]
    await rpc.call("ListFlows")  # a poll blocks no other request
    assert not any(poll.done() for poll in polls)
    call.reply({"a": 1})
    assert {(await poll)["Output"] for poll in polls} == {'{"a":1}'}


async def test_a_long_poll_that_times_out_shows_the_present_state(rpc: Rpc) -> None:
    await rpc.create_flow("f", WAIT)
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    body = await rpc.call("DescribeExecution", FlowName="f", ExecutionName="e", WaitTimeSeconds=1)
    assert (body["Status"], body["StoppedTime"]) == ("Running", "")


@pytest.mark.parametrize("wait", ["", "0", "None", "60"])
async def test_an_ended_execution_is_not_waited_for(rpc: Rpc, wait: str) -> None:
    await rpc.create_flow("f")
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    body = await rpc.call("DescribeExecution", FlowName="f", ExecutionName="e", WaitTimeSeconds=wait)
    assert body["Status"] == "Succeeded"


SYNC_FIELDS = {"Name", "FlowName", "Status", "ErrorCode", "ErrorMessage", "Output", "StartedTime", "StoppedTime"}


@pytest.mark.parametrize("mode", ["", "Standard", "Express"])
async def test_a_synchronous_start_answers_with_the_end(rpc: Rpc, function: Functions, mode: str) -> None:
    await rpc.create_flow("f", CALL, ExecutionMode=mode)
    waiting = asyncio.create_task(rpc.call("StartSyncExecution", FlowName="f", ExecutionName="e", Input='{"n":1}'))
    call = await function.next_call("s/f")
    assert call.event == {"n": 1}
    call.reply({"r": 1})
    body = await waiting
    assert set(body) == SYNC_FIELDS | {"RequestId"}
    assert re.fullmatch(f"e:{UUID}", body["Name"])
    assert (body["Status"], body["Output"], body["ErrorCode"], body["ErrorMessage"]) == ("Succeeded", '{"r":1}', "", "")
    assert (await rpc.call("DescribeExecution", FlowName="f", ExecutionName=body["Name"]))["Status"] == "Succeeded"


async def test_a_synchronous_start_needs_no_name(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    names = [(await rpc.call("StartSyncExecution", FlowName="f", ExecutionName="e"))["Name"] for _ in range(2)]
    assert len(set(names)) == 2
    assert re.fullmatch(UUID, (await rpc.call("StartSyncExecution", FlowName="f"))["Name"])


async def test_a_flow_s_failure_is_not_a_failure_of_the_request(rpc: Rpc) -> None:
    await rpc.create_flow("f", FAIL)
    body = await rpc.call("StartSyncExecution", FlowName="f")
    assert (body["Status"], body["ErrorCode"], body["ErrorMessage"]) == ("Failed", "Own", "because")
    assert body["Output"] == ""


async def test_executions_show_the_environment_of_their_flow(rpc: Rpc) -> None:
    variables = [{"Name": "n", "Value": "v", "Description": "d"}, {"Name": "m", "Value": ""}]
    await rpc.create_flow("f", WAIT, Environment=json.dumps({"Variables": variables}), RoleArn="acs:ram::1:role/r")
    name = {"FlowName": "f", "ExecutionName": "e"}
    assert "Environment" not in await rpc.call("StartExecution", **name)
    shown = {"Variables": [{"Name": "n", "Value": "v"}, {"Name": "m", "Value": ""}]}
    assert (await rpc.call("DescribeExecution", **name))["Environment"] == shown
    assert (await rpc.call("ListExecutions", FlowName="f"))["Executions"][0]["Environment"] == shown
    assert (await rpc.call("StopExecution", **name))["RoleArn"] == "acs:ram::1:role/r"
    await rpc.call("UpdateFlow", Name="f", Definition=PASS)
    assert (await rpc.call("StartSyncExecution", FlowName="f"))["Environment"] == shown
    await rpc.call("UpdateFlow", Name="f", Environment="")
    assert "Environment" not in await rpc.call("DescribeExecution", **name)


@pytest.mark.parametrize(
    ("action", "parameter"),
    [
        ("StartExecution", "FlowVersion"),
        ("StartSyncExecution", "MapRunName"),
        ("ListExecutions", "MapRunName"),
    ],
)
async def test_unsupported_parameters_are_refused(rpc: Rpc, action: str, parameter: str) -> None:
    await rpc.create_flow("f")
    message = await rpc.refused(action, 400, "InvalidArgument", **{"FlowName": "f", parameter: "1"})
    assert message == f"the parameter {parameter} of {action} is not supported here"
    assert (await rpc.call("ListExecutions", FlowName="f"))["Executions"] == []
    for nothing in ("", "None"):
        await rpc.call(action, **{"FlowName": "f", parameter: nothing})


# Lists


@pytest.mark.parametrize("size", [1, 2, 100])
async def test_pages_of_executions_come_newest_first(rpc: Rpc, size: int) -> None:
    await rpc.create_flow("f")
    for number in range(5):
        await rpc.call("StartExecution", FlowName="f", ExecutionName=f"e{number}")
    pages = await rpc.names("ListExecutions", "Executions", FlowName="f", Limit=size)
    listed = (await rpc.call("ListExecutions", FlowName="f"))["Executions"]
    order = sorted(listed, key=lambda item: item["Name"])
    order.sort(key=lambda item: item["StartedTime"], reverse=True)
    assert (
        [name for page in pages for name in page]
        == [item["Name"] for item in order]
        == [item["Name"] for item in listed]
    )
    assert {len(page) for page in pages[:-1]} <= {size}
    assert set(listed[0]) == FIELDS


async def test_filters(rpc: Rpc) -> None:
    await rpc.create_flow("f", WAIT)
    times = {}
    for name in ("ab", "Ab", "b"):
        times[name] = (await rpc.call("StartExecution", FlowName="f", ExecutionName=name))["StartedTime"]
    await rpc.call("StopExecution", FlowName="f", ExecutionName="b")

    async def found(**filters: str) -> set[str]:
        pages = await rpc.names("ListExecutions", "Executions", FlowName="f", **filters)
        return {name for page in pages for name in page}

    assert await found(Status="Running") == {"ab", "Ab"}
    assert await found(Status="Stopped") == {"b"}
    for status in ("Starting", "Succeeded", "Failed", "TimedOut"):
        assert await found(Status=status) == set()
    assert await found(ExecutionNamePrefix="a") == {"ab"}
    assert await found(StartedTimeBegin=times["b"]) >= {"b"}
    assert await found(StartedTimeBegin="2999-01-01T00:00:00Z") == set()
    assert await found(StartedTimeEnd=times["ab"]) >= {"ab"}
    assert await found(StartedTimeEnd="2000-01-01T08:00:00+08:00") == set()
    assert await found(NextToken="nobody") == set()


# Histories


async def test_a_history_of_two_steps(rpc: Rpc) -> None:
    """The sequence that the service's own documentation shows in full."""
    await rpc.create_flow("f", definition("- {type: pass, name: pass1}\n- {type: pass, name: pass2}"))
    await rpc.call("StartExecution", FlowName="f", ExecutionName="e")
    await rpc.end_of("f", "e")
    body = await rpc.call("GetExecutionHistory", FlowName="f", ExecutionName="e")
    assert set(body) == {"Events", "RequestId"}
    rows = [(e["EventId"], e["ScheduleEventId"], e["StepName"], e["Type"], e["EventDetail"]) for e in body["Events"]]
    assert rows == [
        (1, 0, "", "ExecutionStarted", '{"input":{}}'),
        (2, 1, "pass1", "StepEntered", '{"input":{},"local":{}}'),
        (3, 2, "pass1", "StepStarted", '{"input":{}}'),
        (4, 3, "pass1", "StepSucceeded", '{"output":{}}'),
        (5, 4, "pass1", "StepExited", '{"local":{}}'),
        (6, 5, "pass2", "StepEntered", '{"input":{},"local":{}}'),
        (7, 6, "pass2", "StepStarted", '{"input":{}}'),
        (8, 7, "pass2", "StepSucceeded", '{"output":{}}'),
        (9, 8, "pass2", "StepExited", '{"local":{}}'),
        (10, 9, "", "ExecutionSucceeded", '{"output":{}}'),
    ]
    assert all(re.fullmatch(TIME, event["Time"]) for event in body["Events"])


async def test_pages_of_a_history(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    name = {"FlowName": "f", "ExecutionName": "e"}
    await rpc.call("StartExecution", **name)
    first = await rpc.call("GetExecutionHistory", **name, Limit=2)
    assert [event["EventId"] for event in first["Events"]] == [1, 2]
    assert first["NextToken"] == "3"
    rest = await rpc.call("GetExecutionHistory", **name, NextToken="3")
    assert [event["EventId"] for event in rest["Events"]] == [3, 4, 5, 6]
    assert "NextToken" not in rest
    exact = await rpc.call("GetExecutionHistory", **name, Limit=6)
    assert "NextToken" not in exact
    assert (await rpc.call("GetExecutionHistory", **name, NextToken="7"))["Events"] == []


async def test_a_page_of_a_history_has_about_4_mib_at_most(rpc: Rpc) -> None:
    steps = "".join(f"  - {{type: pass, name: p{number}}}\n" for number in range(15))
    await rpc.create_flow("f", f"version: v1\ntype: flow\nsteps:\n{steps}")
    name = {"FlowName": "f", "ExecutionName": "e"}
    await rpc.call("StartExecution", **name, Input=json.dumps({"a": "x" * 200_000}))
    first = await rpc.call("GetExecutionHistory", **name, Limit=1000)
    size = sum(len(event["EventDetail"]) for event in first["Events"])
    assert 3_900_000 < size <= 4_194_304
    assert first["NextToken"] == str(len(first["Events"]) + 1)
    rest = await rpc.call("GetExecutionHistory", **name, Limit=1000, NextToken=first["NextToken"])
    assert rest["Events"][0]["EventId"] == len(first["Events"]) + 1
    assert rest["Events"][-1]["Type"] == "ExecutionSucceeded"


async def test_the_history_of_a_running_execution_is_polled_incrementally(rpc: Rpc, function: Functions) -> None:
    await rpc.create_flow("f", ASK)
    name = {"FlowName": "f", "ExecutionName": "e"}
    await rpc.call("StartExecution", **name)
    call = await function.next_call("s/f")
    body = await rpc.call("GetExecutionHistory", **name)
    assert "NextToken" not in body
    last = body["Events"][-1]["EventId"]
    assert body["Events"][-1]["Type"] == "TaskStarted"
    await rpc.call("ReportTaskFailed", TaskToken=call.event["token"], Error="E")
    news = (await rpc.call("GetExecutionHistory", **name, NextToken=str(last + 1)))["Events"]
    assert [event["EventId"] for event in news] == list(range(last + 1, last + 1 + len(news)))
    assert news[-1]["Type"] == "ExecutionFailed"


# The other database


async def test_all_of_it_on_postgresql(migrated_postgres_url: str) -> None:
    app = create_app(Settings(database_url=migrated_postgres_url, drain_seconds=0))
    value = '{"k":"~*+/&=中\\u0000🚀","n":12345678901234567890}'
    async with running_rpc(app) as rpc:
        await rpc.create_flow("f", WAIT)
        for name in ("b", "B", "_"):
            await rpc.call("StartExecution", FlowName="f", ExecutionName=name, Input=value)
        await rpc.call("StopExecution", FlowName="f", ExecutionName="b", Error="Enough")
        found = await rpc.names("ListExecutions", "Executions", FlowName="f", Status="Running", Limit=1)
        assert sorted(found) == [["B"], ["_"]]
        assert (await rpc.end_of("f", "b"))["Input"] == value
        events = (await rpc.call("GetExecutionHistory", FlowName="f", ExecutionName="b"))["Events"]
        assert [event["Type"] for event in events][-1] == "ExecutionStopped"
        assert json.loads(events[0]["EventDetail"])["input"] == json.loads(value)
        await rpc.refused("StartExecution", 400, "ExecutionAlreadyExists", FlowName="f", ExecutionName="b")
        await rpc.refused("CreateFlow", 409, "FlowAlreadyExists", Name="f", Definition=PASS, Type="FDL")
        await rpc.refused("DescribeFlow", 400, "InvalidArgument", Name="f\0")
