"""Schedules through every SDK."""

import pytest

from tests.sdk.client import SdkClient, SdkError


def test_a_schedule_is_kept_changed_listed_and_deleted(client: SdkClient, ask: str) -> None:
    named = {"FlowName": ask, "ScheduleName": "s"}
    created = client.call("CreateSchedule", **named, CronExpression="@every 90m", Payload='{"k":"~*+/&=% 中"}')
    described = client.call("DescribeSchedule", **named)
    assert created.pop("RequestId") != described.pop("RequestId")
    assert created == described
    assert (created["CronExpression"], created["Payload"], created["Enable"]) == (
        "@every 90m", '{"k":"~*+/&=% 中"}', True
    )  # fmt: skip
    updated = client.call("UpdateSchedule", **named, Enable=False, CronExpression="0 30 2 ? * MON-FRI")
    assert (updated["Enable"], updated["CronExpression"]) == (False, "0 30 2 ? * MON-FRI")
    listed = client.call("ListSchedules", FlowName=ask, Limit=10)
    assert [each["ScheduleName"] for each in listed["Schedules"]] == ["s"]
    assert not listed.get("NextToken")
    assert client.call("DeleteSchedule", **named)["RequestId"]


def test_refusals(client: SdkClient, ask: str) -> None:
    named = {"FlowName": ask, "ScheduleName": "s"}
    for action, code, further in (
        ("DescribeSchedule", "ScheduleNotExists", {}),
        ("DeleteSchedule", "ScheduleNotExists", {}),
        ("CreateSchedule", "InvalidArgument", {"CronExpression": "0 0 24 * * ?"}),
    ):
        with pytest.raises(SdkError) as refused:
            client.call(action, **named, **further)
        assert refused.value.code == code
