"""Flows through every SDK: stored values, answers, pages."""

import pytest

from tests.sdk.client import SdkClient, SdkError
from tests.sdk.conftest import ASK, CALL

AWKWARD = "~*+/&=% 中\u00e9\U0001f600"
DEFINITION = f"# {AWKWARD}\r\nversion: v1\n\ntype: flow\nsteps:\n  - {{type: pass, name: p}}\t \n# no line end"


def create(client: SdkClient, name: str, definition: str = CALL, **further: str) -> dict:
    parameters = {"Description": "-", "Type": "FDL"} | further
    return client.call("CreateFlow", Name=name, Definition=definition, **parameters)


def test_a_flow_is_stored_byte_for_byte(client: SdkClient, unique: str) -> None:
    created = create(client, unique, DEFINITION, Description=AWKWARD, RoleArn="acs:ram::1:role/r")
    described = client.call("DescribeFlow", Name=unique)
    assert created.pop("RequestId") != described.pop("RequestId")
    assert created == described
    assert described["Definition"] == DEFINITION
    assert (described["Name"], described["Description"], described["Type"]) == (unique, AWKWARD, "FDL")
    assert described["RoleArn"] == "acs:ram::1:role/r"
    assert described["CreatedTime"] == described["LastModifiedTime"]


def test_update_changes_only_given_fields(client: SdkClient, unique: str) -> None:
    created = create(client, unique, ASK, Description="before", RoleArn="acs:ram::1:role/r")
    updated = client.call("UpdateFlow", Name=unique, Definition=CALL)
    assert (updated["Definition"], updated["Description"], updated["RoleArn"]) == (
        CALL,
        "before",
        "acs:ram::1:role/r",
    )
    assert (updated["Id"], updated["CreatedTime"]) == (created["Id"], created["CreatedTime"])
    assert client.call("UpdateFlow", Name=unique, Description="after")["Definition"] == CALL
    assert client.call("DescribeFlow", Name=unique)["Description"] == "after"


def test_flows_are_listed_by_name_page_after_page(client: SdkClient, unique: str) -> None:
    names = [f"{unique}_{n}" for n in range(5)]
    for name in reversed(names):
        create(client, name)
    page = client.call("ListFlows", Limit=2, NextToken=unique)
    listed = page["Flows"]
    while len(listed) < len(names):
        assert len(page["Flows"]) == 2
        page = client.call("ListFlows", Limit=2, NextToken=page["NextToken"])
        listed += page["Flows"]
    assert [flow["Name"] for flow in listed[: len(names)]] == names
    assert listed[0]["Definition"] == CALL


def test_the_last_page_has_no_token(client: SdkClient) -> None:
    assert not client.call("ListFlows", Limit=1000).get("NextToken")


def test_a_deleted_flow_is_gone_and_its_name_is_free(client: SdkClient, unique: str) -> None:
    first = create(client, unique)
    assert set(client.call("DeleteFlow", Name=unique)) == {"RequestId"}
    with pytest.raises(SdkError) as refusal:
        client.call("DescribeFlow", Name=unique)
    assert refusal.value.code == "FlowNotExists"
    assert create(client, unique)["Id"] != first["Id"]
