"""Refusals as every SDK reports them: the exception's class, the code and the status."""

from dataclasses import replace

import pytest

from tests.sdk.client import CLASSIC, Access, Sdk, SdkClient, SdkError
from tests.sdk.conftest import ASK, CALL
from tests.support.access_key import ACCESS_KEY_ID, SECRET

NEW = {"Description": "-", "Type": "FDL"}
NONE = {"FlowName": "none", "ExecutionName": "e"}


def refusal(client: SdkClient, action: str, **parameters: object) -> SdkError:
    with pytest.raises(SdkError) as refused:
        client.call(action, **parameters)
    return refused.value


@pytest.fixture(scope="module")
def known(servers, process_of) -> None:
    """A flow of this name exists on the server with keys."""
    access = Access(f"127.0.0.1:{servers['keyed'].port}", ACCESS_KEY_ID, SECRET)
    SdkClient(process_of(CLASSIC), access).call("CreateFlow", Name="known", Definition=ASK, **NEW)


@pytest.mark.parametrize(
    ("action", "parameters", "code", "status"),
    [
        ("CreateFlow", {"Name": "known", "Definition": CALL, **NEW}, "FlowAlreadyExists", 409),
        ("CreateFlow", {"Name": "a/b", "Definition": CALL, **NEW}, "InvalidArgument", 400),
        ("CreateFlow", {"Name": "x", "Definition": "steps: [", **NEW}, "InvalidArgument", 400),
        ("UpdateFlow", {"Name": "none", "Description": "d"}, "FlowNotExists", 404),
        ("UpdateFlow", {"Name": "known", "Definition": "version: v1"}, "InvalidArgument", 400),
        ("DeleteFlow", {"Name": "none"}, "FlowNotExists", 404),
        ("DescribeFlow", {"Name": "none"}, "FlowNotExists", 404),
        ("ListFlows", {"Limit": 1001}, "InvalidArgument", 400),
        ("StartExecution", {"FlowName": "none"}, "FlowNotExists", 404),
        ("StartExecution", {"FlowName": "known", "Input": "[1]"}, "InvalidArgument", 400),
        ("StartExecution", {"FlowName": "known", "Input": "{"}, "InvalidArgument", 400),
        ("StartExecution", {"FlowName": "known", "ExecutionName": "1"}, "InvalidArgument", 400),
        ("StartExecution", {"FlowName": "known", "CallbackFnFTaskToken": "forged"}, "InvalidArgument", 400),
        ("StopExecution", NONE, "FlowNotExists", 404),
        ("StopExecution", NONE | {"FlowName": "known"}, "ExecutionNotExists", 404),
        ("DescribeExecution", NONE, "FlowNotExists", 404),
        ("DescribeExecution", NONE | {"FlowName": "known"}, "ExecutionNotExists", 404),
        ("DescribeExecution", NONE | {"FlowName": "known", "WaitTimeSeconds": 61}, "InvalidArgument", 400),
        ("ListExecutions", {"FlowName": "none"}, "FlowNotExists", 404),
        ("ListExecutions", {"FlowName": "known", "Status": "Odd"}, "InvalidArgument", 400),
        ("GetExecutionHistory", NONE, "FlowNotExists", 404),
        ("GetExecutionHistory", NONE | {"FlowName": "known"}, "ExecutionNotExists", 404),
        ("ReportTaskSucceeded", {"TaskToken": "forged+/=~ x", "Output": "{}"}, "InvalidArgument", 400),
        ("ReportTaskFailed", {"TaskToken": "forged", "Error": "E"}, "InvalidArgument", 400),
        ("ListSchedules", {"FlowName": "none"}, "FlowNotExists", 404),
        ("DescribeSchedule", {"FlowName": "known", "ScheduleName": "none"}, "ScheduleNotExists", 404),
    ],
)
def test_refusals(
    sdk: Sdk, process_of, keyed: Access, known: None, action: str, parameters: dict, code: str, status: int
) -> None:
    refused = refusal(SdkClient(process_of(sdk), keyed), action, **parameters)
    assert (refused.code, refused.status, refused.raised) == (code, status, sdk.raises.format(code=code))


def test_diagnostics_of_a_definition_reach_the_caller(client: SdkClient) -> None:
    steps = "- {type: pass, name: p}\n- {type: pss, name: q}\n"
    refused = refusal(client, "CreateFlow", Name="x", Definition=f"version: v1\ntype: flow\nsteps:\n{steps}", **NEW)
    assert "line 5" in refused.message
    assert "pss" in refused.message


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"secret": "wrong"}, "SignatureNotMatch"),
        ({"access_key_id": "stranger"}, "InvalidAccessKeyID"),
        ({"seconds_ago": 16 * 60}, "RequestTimeTooSkewed"),
        ({"seconds_ago": -16 * 60}, "RequestTimeTooSkewed"),
    ],
    ids=["secret", "key", "late", "early"],
)
def test_unauthorized_callers(sdk: Sdk, process_of, keyed: Access, change: dict, code: str) -> None:
    for action, parameters in (
        ("ListFlows", {}),
        ("CreateFlow", {"Name": "x", "Definition": CALL, **NEW}),
        ("ReportTaskSucceeded", {"TaskToken": "t", "Output": "{}"}),
    ):
        refused = refusal(SdkClient(process_of(sdk), replace(keyed, **change)), action, **parameters)
        assert (refused.code, refused.status, refused.raised) == (code, 403, sdk.raises.format(code=code))


@pytest.mark.parametrize("seconds_ago", [14 * 60, -14 * 60])
def test_clocks_may_be_slightly_wrong(sdk: Sdk, process_of, keyed: Access, seconds_ago: int) -> None:
    client = SdkClient(process_of(sdk), replace(keyed, seconds_ago=seconds_ago))
    assert "Flows" in client.call("ListFlows", Limit=1)
