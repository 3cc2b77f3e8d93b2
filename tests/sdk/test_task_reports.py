"""Task tokens through every SDK: reports of success and failure, once each, and children that report for a task."""

import json

import pytest

from tests.sdk.client import SdkClient, SdkError
from tests.sdk.conftest import CALL


def waiting_task(client: SdkClient, flow: str) -> str:
    """Start the execution `e1`; returns the token of its task, which has been submitted."""
    client.call("StartExecution", FlowName=flow, ExecutionName="e1")
    while True:  # the function answers by itself
        events = client.call("GetExecutionHistory", FlowName=flow, ExecutionName="e1")["Events"]
        for event in events:
            if event["Type"] == "TaskSubmitted":
                return json.loads(event["EventDetail"])["output"]["taskToken"]


def ended(client: SdkClient, flow: str) -> dict:
    return client.call("DescribeExecution", FlowName=flow, ExecutionName="e1", WaitTimeSeconds=30)


def test_success_continues_with_the_output(client: SdkClient, ask: str) -> None:
    output = '{"answer": "~*+/&=% 中\\n"}'
    receipt = client.call("ReportTaskSucceeded", TaskToken=waiting_task(client, ask), Output=output)
    assert isinstance(receipt["EventId"], int)
    execution = ended(client, ask)
    assert (execution["Status"], json.loads(execution["Output"])) == ("Succeeded", json.loads(output))
    events = client.call("GetExecutionHistory", FlowName=ask, ExecutionName="e1")["Events"]
    assert events[receipt["EventId"] - 1]["Type"] == "TaskSucceeded"


def test_failure_fails_the_step_under_its_name(client: SdkClient, ask: str) -> None:
    client.call("ReportTaskFailed", TaskToken=waiting_task(client, ask), Error="Rejected", Cause="~*+/&=% 中")
    assert ended(client, ask)["Status"] == "Failed"
    events = client.call("GetExecutionHistory", FlowName=ask, ExecutionName="e1")["Events"]
    failed = next(event for event in events if event["Type"] == "TaskFailed")
    detail = json.loads(failed["EventDetail"])
    assert detail.pop("requestId")
    assert detail == {"error": "Rejected", "cause": "~*+/&=% 中"}


def test_a_token_is_valid_for_one_report(client: SdkClient, ask: str) -> None:
    token = waiting_task(client, ask)
    client.call("ReportTaskSucceeded", TaskToken=token, Output="{}")
    for action, result in (("ReportTaskSucceeded", {"Output": "{}"}), ("ReportTaskFailed", {"Error": "E"})):
        with pytest.raises(SdkError) as refusal:
            client.call(action, TaskToken=token, **result)
        assert (refusal.value.code, refusal.value.status) == ("TaskAlreadyCompleted", 400)


def test_an_execution_may_report_for_a_task(client: SdkClient, ask: str) -> None:
    token = waiting_task(client, ask)
    client.call("CreateFlow", Name=f"{ask}_child", Definition=CALL, Description="-", Type="FDL")
    client.call("StartExecution", FlowName=f"{ask}_child", Input='{"by": "child"}', CallbackFnFTaskToken=token)
    assert json.loads(ended(client, ask)["Output"]) == {"by": "child"}
