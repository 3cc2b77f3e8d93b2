"""Task tokens: reports, their answers, and executions that report to a task when they end."""

import json
from typing import Any

import pytest

from flowserver.base.task_tokens import TaskTokens
from tests.api.rpc.conftest import ASK, PASS, WAIT, Rpc
from tests.engine.called_functions import Call, Functions
from tests.engine.nodes import definition

RUN = {"FlowName": "f", "ExecutionName": "e"}
RETRYING = ASK.rstrip() + "\n    retry: [{errors: [Busy], intervalSeconds: 3600}]\n"


async def waiting(rpc: Rpc, function: Functions, text: str = ASK) -> Call:
    """The call of a task that waits for its report."""
    await rpc.create_flow("f", text)
    await rpc.call("StartExecution", **RUN)
    return await function.next_call("s/f")


async def submitted(rpc: Rpc, function: Functions) -> str:
    """The token of a task whose call has been answered."""
    call = await waiting(rpc, function)
    call.reply({"accepted": True})
    body: dict[str, Any] = {"Events": []}
    while not any(event["Type"] == "TaskSubmitted" for event in body["Events"]):
        body = await rpc.call("GetExecutionHistory", **RUN)
    return str(call.event["token"])


@pytest.mark.parametrize("early", [True, False])
async def test_a_task_succeeds(rpc: Rpc, function: Functions, early: bool) -> None:
    """A report may arrive before the call that passed on the token has been answered."""
    token = (await waiting(rpc, function)).event["token"] if early else await submitted(rpc, function)
    body = await rpc.call("ReportTaskSucceeded", TaskToken=token, Output='{"s": "ok 中"}')
    assert set(body) == {"EventId", "RequestId"}
    ended = await rpc.end_of("f", "e")
    assert (ended["Status"], json.loads(ended["Output"])) == ("Succeeded", {"s": "ok 中"})
    events = (await rpc.call("GetExecutionHistory", **RUN))["Events"]
    event = events[body["EventId"] - 1]
    assert (event["Type"], json.loads(event["EventDetail"])["requestId"]) == ("TaskSucceeded", body["RequestId"])


async def test_a_task_fails(rpc: Rpc, function: Functions) -> None:
    token = await submitted(rpc, function)
    body = await rpc.call("ReportTaskFailed", TaskToken=token, Error="Own", Cause="because 中")
    assert (await rpc.end_of("f", "e"))["Status"] == "Failed"
    event = (await rpc.call("GetExecutionHistory", **RUN))["Events"][body["EventId"] - 1]
    detail = {"error": "Own", "cause": "because 中", "requestId": body["RequestId"]}
    assert (event["Type"], json.loads(event["EventDetail"])) == ("TaskFailed", detail)


@pytest.mark.parametrize("again", ["ReportTaskSucceeded", "ReportTaskFailed"])
async def test_a_token_is_used_once(rpc: Rpc, function: Functions, again: str) -> None:
    token = await submitted(rpc, function)
    await rpc.call("ReportTaskSucceeded", TaskToken=token, Output="{}")
    await rpc.refused(again, 400, "TaskAlreadyCompleted", TaskToken=token, Output="{}", Error="E")


async def test_a_token_of_a_stopped_execution(rpc: Rpc, function: Functions) -> None:
    token = await submitted(rpc, function)
    await rpc.call("StopExecution", **RUN)
    await rpc.refused("ReportTaskSucceeded", 400, "TaskAlreadyCompleted", TaskToken=token, Output="{}")


async def test_a_report_between_two_attempts_is_too_early(rpc: Rpc, function: Functions) -> None:
    call = await waiting(rpc, function, RETRYING)
    await rpc.call("ReportTaskFailed", TaskToken=call.event["token"], Error="Busy")
    await rpc.refused("ReportTaskSucceeded", 409, "TaskInvalidState", TaskToken=call.event["token"], Output="{}")
    assert (await rpc.call("DescribeExecution", **RUN))["Status"] == "Running"


@pytest.mark.parametrize("token", ["x", "tok+/=~ x", "中", "A" * 2000, "djEjeCMxIzIjIyM="])
async def test_forged_tokens(rpc: Rpc, token: str) -> None:
    await rpc.refused("ReportTaskSucceeded", 400, "InvalidArgument", TaskToken=token, Output="{}")
    await rpc.refused("ReportTaskFailed", 400, "InvalidArgument", TaskToken=token, Error="E")


async def test_another_server_s_token(rpc: Rpc, function: Functions) -> None:
    call = await waiting(rpc, function)
    stranger = TaskTokens(b"another server's key").make("id", 1, 2, None)
    await rpc.refused("ReportTaskSucceeded", 400, "InvalidArgument", TaskToken=stranger, Output="{}")
    tampered = call.event["token"][:-2] + "AA"
    await rpc.refused("ReportTaskSucceeded", 400, "InvalidArgument", TaskToken=tampered, Output="{}")


@pytest.mark.parametrize(
    ("action", "given", "code"),
    [
        ("ReportTaskSucceeded", {"Output": "{}", "TaskToken": ""}, "MissingRequiredParams"),
        ("ReportTaskSucceeded", {}, "MissingRequiredParams"),
        ("ReportTaskSucceeded", {"Output": "[]"}, "InvalidArgument"),
        ("ReportTaskSucceeded", {"Output": "ok"}, "InvalidArgument"),
        ("ReportTaskSucceeded", {"Output": '{"a":"' + "x" * 262_144 + '"}'}, "InvalidArgument"),
        ("ReportTaskFailed", {}, "MissingRequiredParams"),
        ("ReportTaskFailed", {"Error": "E" * 129}, "InvalidArgument"),
        ("ReportTaskFailed", {"Error": "E", "Cause": "C" * 4097}, "InvalidArgument"),
    ],
)
async def test_refused_reports_leave_the_task_waiting(
    rpc: Rpc, function: Functions, action: str, given: dict[str, str], code: str
) -> None:
    token = await submitted(rpc, function)
    await rpc.refused(action, 400, code, **{"TaskToken": token, **given})
    await rpc.call("ReportTaskSucceeded", TaskToken=token, Output="{}")
    assert (await rpc.end_of("f", "e"))["Status"] == "Succeeded"


# CallbackFnFTaskToken


async def test_an_execution_reports_its_output_to_a_task(rpc: Rpc, function: Functions) -> None:
    token = await submitted(rpc, function)
    await rpc.create_flow("other", PASS.replace("steps:", "outputMappings: [{target: a, source: 1}]\nsteps:"))
    await rpc.call("StartExecution", FlowName="other", CallbackFnFTaskToken=token)
    assert json.loads((await rpc.end_of("f", "e"))["Output"]) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "stop", "error"),
    [
        (definition("- {type: fail, name: f, error: Own, cause: because}"), {}, "Own"),
        (WAIT, {"Error": "Enough", "Cause": "c"}, "Enough"),
        (WAIT, {"Cause": "c"}, "FnF.ExecutionStopped"),
    ],
)
async def test_an_execution_that_does_not_succeed_fails_the_task(
    rpc: Rpc, function: Functions, text: str, stop: dict[str, str], error: str
) -> None:
    token = await submitted(rpc, function)
    await rpc.create_flow("other", text)
    await rpc.call("StartExecution", FlowName="other", ExecutionName="o", CallbackFnFTaskToken=token)
    if stop:
        await rpc.call("StopExecution", FlowName="other", ExecutionName="o", **stop)
    await rpc.end_of("f", "e")
    [*_, last] = (await rpc.call("GetExecutionHistory", **RUN))["Events"]
    assert json.loads(last["EventDetail"])["error"] == error


async def test_a_finished_task_ignores_a_late_callback(rpc: Rpc, function: Functions) -> None:
    token = await submitted(rpc, function)
    await rpc.create_flow("other", WAIT)
    await rpc.call("StartExecution", FlowName="other", ExecutionName="o", CallbackFnFTaskToken=token)
    await rpc.call("ReportTaskSucceeded", TaskToken=token, Output='{"first":true}')
    await rpc.call("StopExecution", FlowName="other", ExecutionName="o")
    assert (await rpc.end_of("f", "e"))["Output"] == '{"first":true}'
