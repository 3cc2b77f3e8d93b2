"""Executions through every SDK: names, waiting, listing, histories, stopping."""

import json

import pytest

from tests.sdk.client import SdkClient, SdkError
from tests.sdk.conftest import CALL

INPUT = '{"text": "~*+/&=% 中\\n\\u00e9",  "exact": 12345678901234567890}'


def start(client: SdkClient, flow: str, **further: str) -> dict:
    return client.call("StartExecution", FlowName=flow, **further)


def describe(client: SdkClient, flow: str, name: str, seconds: int = 0) -> dict:
    return client.call("DescribeExecution", FlowName=flow, ExecutionName=name, WaitTimeSeconds=seconds)


def test_input_is_kept_and_output_is_exact(client: SdkClient, unique: str) -> None:
    client.call("CreateFlow", Name=unique, Definition=CALL, Description="-", Type="FDL")
    started = start(client, unique, ExecutionName="e1", Input=INPUT)
    ended = describe(client, unique, started["Name"], seconds=30)
    assert (ended["Status"], ended["FlowDefinition"], ended["Input"]) == ("Succeeded", CALL, INPUT)
    assert json.loads(ended["Output"]) == json.loads(INPUT)
    assert ended["StartedTime"] <= ended["StoppedTime"]


def test_a_name_starts_one_execution(client: SdkClient, ask: str) -> None:
    first = start(client, ask, ExecutionName="once", Input='{"n":1}')
    again = start(client, ask, ExecutionName="once", Input='{"n":2}')
    assert (again["Status"], again["Input"], again["StartedTime"]) == ("Running", '{"n":1}', first["StartedTime"])
    client.call("StopExecution", FlowName=ask, ExecutionName="once")
    with pytest.raises(SdkError) as refusal:
        start(client, ask, ExecutionName="once")
    assert (refusal.value.code, refusal.value.status) == ("ExecutionAlreadyExists", 400)


def test_executions_without_a_name_get_one(client: SdkClient, ask: str) -> None:
    assert start(client, ask)["Name"] != start(client, ask)["Name"]


def test_describe_waits_for_the_end(client: SdkClient, unique: str) -> None:
    nap = "version: v1\ntype: flow\nsteps:\n  - {type: wait, name: nap, duration: 1}\n"
    client.call("CreateFlow", Name=unique, Definition=nap, Description="-", Type="FDL")
    started = start(client, unique, ExecutionName="e1")
    assert (started["Status"], started["StoppedTime"]) == ("Running", "")
    assert describe(client, unique, "e1", seconds=30)["Status"] == "Succeeded"


def test_list_filters_and_pages(client: SdkClient, ask: str) -> None:
    names = ["a1", "a2", "a3", "b1"]
    started = [start(client, ask, ExecutionName=name)["StartedTime"] for name in names]
    client.call("StopExecution", FlowName=ask, ExecutionName="a2")

    def listed(**filters: object) -> list[str]:
        page = client.call("ListExecutions", FlowName=ask, **filters)
        return [execution["Name"] for execution in page["Executions"]]

    assert set(listed()) == set(names)
    assert listed(Status="Stopped") == ["a2"]
    assert set(listed(Status="Running", ExecutionNamePrefix="a")) == {"a1", "a3"}
    assert set(listed(StartedTimeBegin=started[0], StartedTimeEnd=started[-1])) == set(names)
    assert listed(StartedTimeBegin="2100-01-01T00:00:00Z") == []
    page = client.call("ListExecutions", FlowName=ask, Limit=3)
    rest = client.call("ListExecutions", FlowName=ask, Limit=3, NextToken=page["NextToken"])
    assert not rest.get("NextToken")
    both = [execution["Name"] for execution in page["Executions"] + rest["Executions"]]
    assert both == listed()


def test_history_follows_the_steps_page_after_page(client: SdkClient, unique: str) -> None:
    client.call("CreateFlow", Name=unique, Definition=CALL, Description="-", Type="FDL")
    start(client, unique, ExecutionName="e1", Input='{"k": "v"}')
    describe(client, unique, "e1", seconds=30)
    events = client.call("GetExecutionHistory", FlowName=unique, ExecutionName="e1")["Events"]
    assert [event["Type"] for event in events] == [
        "ExecutionStarted",
        "StepEntered",
        "StepStarted",
        "TaskScheduled",
        "TaskStarted",
        "TaskSucceeded",
        "StepSucceeded",
        "StepExited",
        "ExecutionSucceeded",
    ]
    assert [(event["EventId"], event["ScheduleEventId"]) for event in events] == [(n + 1, n) for n in range(9)]
    succeeded = json.loads(events[5]["EventDetail"])
    assert (succeeded["output"], set(succeeded)) == ({"k": "v"}, {"output", "requestId"})
    paged: list[dict] = []
    token: dict[str, str] = {}
    while token is not None:
        page = client.call("GetExecutionHistory", FlowName=unique, ExecutionName="e1", Limit=4, **token)
        paged += page["Events"]
        token = {"NextToken": page["NextToken"]} if page.get("NextToken") else None
    assert paged == events


def test_stop_ends_an_execution_once(client: SdkClient, ask: str) -> None:
    start(client, ask, ExecutionName="e1")
    stopped = client.call("StopExecution", FlowName=ask, ExecutionName="e1", Error="Enough", Cause="because ~*+ 中")
    assert stopped["StoppedTime"]
    assert describe(client, ask, "e1")["Status"] == "Stopped"
    last = client.call("GetExecutionHistory", FlowName=ask, ExecutionName="e1")["Events"][-1]
    assert (last["Type"], json.loads(last["EventDetail"])) == (
        "ExecutionStopped",
        {"error": "Enough", "cause": "because ~*+ 中"},
    )
    with pytest.raises(SdkError) as refusal:
        client.call("StopExecution", FlowName=ask, ExecutionName="e1")
    assert (refusal.value.code, refusal.value.status) == ("ExecutionAlreadyCompleted", 400)
