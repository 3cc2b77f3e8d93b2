"""The schedule actions: fields, paging, and every refusal."""

import pytest

from tests.api.rpc.conftest import Rpc

FIELDS = {
    "ScheduleId", "ScheduleName", "Description", "CronExpression", "Payload", "Enable", "CreatedTime",
    "LastModifiedTime", "RequestId",
}  # fmt: skip
S = {"FlowName": "f", "ScheduleName": "s"}


async def test_creating_describing_updating_deleting(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    created = await rpc.call("CreateSchedule", **S, CronExpression="@every 1m", Payload='{"k":"v"}')
    assert set(created) == FIELDS
    assert (created["ScheduleName"], created["CronExpression"]) == ("s", "@every 1m")
    assert (created["Payload"], created["Enable"], created["Description"]) == ('{"k":"v"}', True, "")
    described = await rpc.call("DescribeSchedule", **S)
    assert {**described, "RequestId": ""} == {**created, "RequestId": ""}
    updated = await rpc.call("UpdateSchedule", **S, Enable="False", Description="d")
    assert (updated["Enable"], updated["Description"], updated["Payload"]) == (False, "d", '{"k":"v"}')
    assert updated["ScheduleId"] == created["ScheduleId"]
    assert (await rpc.call("UpdateSchedule", **S, CronExpression="0 0 2 * * ?"))["CronExpression"] == "0 0 2 * * ?"
    assert (await rpc.call("UpdateSchedule", **S, Payload=""))["Payload"] == ""
    assert set(await rpc.call("DeleteSchedule", **S)) == {"RequestId"}
    await rpc.refused("DescribeSchedule", 404, "ScheduleNotExists", **S)


async def test_a_schedule_may_be_created_disabled(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    created = await rpc.call("CreateSchedule", **S, CronExpression="@every 1m", Enable="false")
    assert created["Enable"] is False


async def test_pages_of_schedules(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    for name in ("c", "a", "b"):
        await rpc.call("CreateSchedule", FlowName="f", ScheduleName=name, CronExpression="@every 1m")
    first = await rpc.call("ListSchedules", FlowName="f", Limit=2)
    assert [each["ScheduleName"] for each in first["Schedules"]] == ["a", "b"]
    assert first["NextToken"] == "c"
    last = await rpc.call("ListSchedules", FlowName="f", NextToken=first["NextToken"])
    assert [each["ScheduleName"] for each in last["Schedules"]] == ["c"]
    assert "NextToken" not in last


@pytest.mark.parametrize("action", ["CreateSchedule", "UpdateSchedule", "DescribeSchedule", "DeleteSchedule"])
async def test_schedules_that_do_not_exist(rpc: Rpc, action: str) -> None:
    await rpc.refused(action, 404, "FlowNotExists", **S, CronExpression="@every 1m")
    await rpc.refused("ListSchedules", 404, "FlowNotExists", FlowName="f")
    await rpc.create_flow("f")
    if action != "CreateSchedule":
        await rpc.refused(action, 404, "ScheduleNotExists", **S)


async def test_a_name_is_unique(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    await rpc.call("CreateSchedule", **S, CronExpression="@every 1m")
    await rpc.refused("CreateSchedule", 409, "ScheduleAlreadyExists", **S, CronExpression="@every 1m")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("CronExpression", "0 0 24 * * ?", "CronExpression: hours (field 3, column 5): '24' is not one of 0 to 23"),
        ("CronExpression", "*/10 * * * * *", "seconds (field 1, column 1)"),
        ("CronExpression", "@every 30s", "is not @every <n>m"),
        ("Payload", "[1]", "Payload must be the JSON text of an object"),
        ("Payload", '{"k": "' + "x" * 65_536 + '"}', "schedule_payload_bytes_max"),
        ("Payload", '{"k": "\\u0000"}', ""),
        ("Description", "x" * 4_097, "Description must have at most 4096 characters"),
        ("Description", "\0", "must not hold NUL"),
        ("Enable", "maybe", "Enable must be true or false"),
        ("ScheduleName", "a b", "ScheduleName must be 1-128"),
    ],
)
async def test_refused_fields(rpc: Rpc, field: str, value: str, message: str) -> None:
    await rpc.create_flow("f")
    given = S | {"CronExpression": "@every 1m"} | {field: value}
    if message:
        assert message in await rpc.refused("CreateSchedule", 400, "InvalidArgument", **given)
    else:
        await rpc.call("CreateSchedule", **given)


@pytest.mark.parametrize("missing", ["FlowName", "ScheduleName", "CronExpression"])
async def test_required_parameters(rpc: Rpc, missing: str) -> None:
    given = S | {"CronExpression": "@every 1m"}
    del given[missing]
    assert missing in await rpc.refused("CreateSchedule", 400, "MissingRequiredParams", **given)
