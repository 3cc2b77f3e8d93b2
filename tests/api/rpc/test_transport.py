"""The ways to send requests, and the form of every answer, for all SDK generations."""

import json
import re
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from flowserver.server import Application, create_app
from flowserver.settings import Settings
from tests.api.rpc.conftest import PASS, WAIT, Rpc, fault, running_rpc, success

FLOW = {"Name": "f", "Definition": PASS, "Type": "FDL"}
DESCRIBE = {"Action": "DescribeFlow", "Version": "2019-03-15", "Name": "f"}
AWKWARD = "~*+/&=中 %41%2B+?#;,\r\n\t'\"\\🚀"


@pytest.fixture
async def described(rpc: Rpc) -> Rpc:
    """An application with the flow `f`."""
    await rpc.create_flow("f")
    return rpc


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_parameters_may_be_in_the_query(described: Rpc, method: str) -> None:
    assert success(await described.http.request(method, "/", params=DESCRIBE))["Name"] == "f"


async def test_parameters_may_be_in_the_form(described: Rpc) -> None:
    assert success(await described.http.post("/", data=DESCRIBE))["Name"] == "f"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_deleting_accepts_any_method(described: Rpc, method: str) -> None:
    success(await described.http.request(method, "/", params={"Action": "DeleteFlow", "Name": "f"}))
    await described.refused("DescribeFlow", 404, "FlowNotExists", Name="f")


async def test_query_and_form_are_merged_and_the_form_wins(described: Rpc) -> None:
    query = {"Action": "DescribeFlow", "Version": "2019-03-15", "Name": "other"}
    assert success(await described.http.post("/", params=query, data={"Name": "f"}))["Name"] == "f"
    fault(await described.http.post("/", params={**query, "Name": "f"}, data={"Name": "other"}), 404, "FlowNotExists")


async def test_the_last_of_equal_names_counts(described: Rpc) -> None:
    assert success(await described.http.get("/?Action=DescribeFlow&Name=other&Name=f"))["Name"] == "f"


async def test_headers_alone_may_name_the_action(described: Rpc) -> None:
    headers = {"x-acs-action": "DescribeFlow", "x-acs-version": "2019-03-15"}
    assert success(await described.http.get("/", params={"Name": "f"}, headers=headers))["Name"] == "f"


async def test_the_parameter_names_the_action_before_the_header(described: Rpc) -> None:
    headers = {"x-acs-action": "DeleteFlow", "x-acs-version": "1999-01-01"}
    assert success(await described.http.get("/", params=DESCRIBE, headers=headers))["Name"] == "f"


@pytest.mark.parametrize(
    ("parameters", "headers", "status", "code"),
    [
        ({}, {}, 400, "MissingRequiredParams"),
        ({"Action": ""}, {}, 400, "MissingRequiredParams"),
        ({"Action": "describeflow"}, {}, 400, "ActionNotSupported"),
        ({"Action": "CreateSchedule"}, {}, 400, "MissingRequiredParams"),
        ({"Action": "DescribeMapRun", "FlowName": "f"}, {}, 400, "ActionNotSupported"),
        ({"Action": "UpdateMapRun", "FlowName": "f"}, {}, 400, "ActionNotSupported"),
        ({"Action": "A" * 5_000}, {}, 400, "ActionNotSupported"),
        ({"Action": "DescribeFlow", "Name": "f", "Version": "2019-03-16"}, {}, 400, "APIVersionNotSupported"),
        ({"Action": "DescribeFlow", "Name": "f"}, {"x-acs-version": "1"}, 400, "APIVersionNotSupported"),
        ({"Action": "DescribeFlow"}, {}, 400, "MissingRequiredParams"),
        ({"Action": "DescribeFlow", "Name": ""}, {}, 400, "MissingRequiredParams"),
    ],
)
async def test_requests_without_an_action(
    described: Rpc, parameters: dict, headers: dict, status: int, code: str
) -> None:
    fault(await described.http.get("/", params=parameters, headers=headers), status, code)


async def test_unknown_parameters_are_ignored(described: Rpc) -> None:
    more = {"RegionId": "cn-x", "Format": "None", "SignatureType": "", "SecurityToken": "t", "Whatever": AWKWARD}
    assert success(await described.http.get("/", params={**DESCRIBE, **more}))["Name"] == "f"


@pytest.mark.parametrize("position", ["query", "form"])
async def test_special_characters_arrive_unchanged(rpc: Rpc, position: str) -> None:
    text = PASS + f"# {AWKWARD}".replace("\r\n", "\n# ") + "\n"
    given = {"Action": "CreateFlow", **FLOW, "Definition": text, "Description": AWKWARD}
    if position == "form":
        created = success(await rpc.http.post("/", data=given))
    else:
        created = success(await rpc.http.get("/", params=given))
    assert (created["Definition"], created["Description"]) == (text, AWKWARD)
    value = json.dumps({"k": AWKWARD, "n": 12345678901234567890123, "f": 1.50}, ensure_ascii=False, indent=1)
    started = await rpc.call("StartExecution", FlowName="f", ExecutionName="e", Input=value)
    ended = await rpc.end_of("f", "e")
    assert started["Input"] == ended["Input"] == value
    assert started["FlowDefinition"] == text
    [first, *_] = (await rpc.call("GetExecutionHistory", FlowName="f", ExecutionName="e"))["Events"]
    assert json.loads(first["EventDetail"])["input"]["k"] == AWKWARD
    assert "12345678901234567890123" in first["EventDetail"]


@pytest.mark.parametrize("encoded", ["v%201", "v+1"])
async def test_blanks_may_be_written_both_ways(rpc: Rpc, encoded: str) -> None:
    await rpc.create_flow("f")
    body = f"Action=StartExecution&FlowName=f&ExecutionName=e&Input=%7B%22k%22%3A%22{encoded}%22%7D"
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    assert success(await rpc.http.post("/", content=body, headers=headers))["Input"] == '{"k":"v 1"}'


async def test_fields_may_be_empty_and_values_may_hold_equals_signs(rpc: Rpc) -> None:
    await rpc.create_flow("f")
    body = 'Action=StartExecution&&flag&=x&FlowName=f&ExecutionName=e&Input={"k":"a=b"}&'
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert success(await rpc.http.post("/", content=body, headers=headers))["Input"] == '{"k":"a=b"}'


async def test_texts_need_not_be_percent_encoded(rpc: Rpc) -> None:
    """As curl's -d sends them."""
    body = 'Action=CreateFlow&Name=f&Type=FDL&Description=中 ~*&Definition={"version":"v1","type":"flow","steps":[]}'
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    message = fault(await rpc.http.post("/", content=body.encode(), headers=headers), 400, "InvalidArgument")
    assert "steps" in message
    body = body.replace("[]", '[{"type":"pass","name":"p"}]')
    assert success(await rpc.http.post("/", content=body.encode(), headers=headers))["Description"] == "中 ~*"


@pytest.mark.parametrize(
    "raw",
    [b"\xff", b"%FF", b"%ED%A0%80", b"%C3", b"a%00b", b"\x00", b"%c0%80"],
)
@pytest.mark.parametrize("position", ["query", "form", "name"])
async def test_invalid_unicode_is_refused(rpc: Rpc, raw: bytes, position: str) -> None:
    parameters = b"Action=DescribeFlow&" + (raw + b"=f" if position == "name" else b"Name=" + raw)
    if position == "form":
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        fault(await rpc.http.post("/", content=parameters, headers=headers), 400, "InvalidArgument")
    else:
        body = await ask(rpc, parameters)
        assert (body["Code"]) == "InvalidArgument"


async def ask(rpc: Rpc, query: bytes) -> dict[str, Any]:
    """Send bytes as the query that every client library would reject."""
    app = rpc.http._transport.app  # type: ignore[attr-defined]
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "root_path": "",
        "scheme": "http",
        "query_string": query,
        "headers": [(b"host", b"127.0.0.1")],
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return dict(json.loads(b"".join(message.get("body", b"") for message in sent)))


async def test_too_many_parameters(rpc: Rpc) -> None:
    many = {f"p{number}": "" for number in range(300)}
    fault(await rpc.http.post("/", data={"Action": "ListFlows", **many}), 400, "EntityTooLarge")


@pytest.mark.parametrize("size", [1_048_577, 3_000_000])
async def test_a_body_that_is_too_large(rpc: Rpc, size: int) -> None:
    body = b"Action=CreateFlow&Name=f&Type=FDL&Definition="
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = await rpc.http.post("/", content=body + b"x" * (size - len(body)), headers=headers)
    fault(response, 400, "EntityTooLarge")
    await rpc.call("ListFlows")


async def test_a_body_of_the_largest_size_is_read(rpc: Rpc) -> None:
    body = b"Action=CreateFlow&Name=f&Type=FDL&Definition="
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = await rpc.http.post("/", content=body + b"x" * (1_048_576 - len(body)), headers=headers)
    assert "262144" in fault(response, 400, "InvalidArgument")  # too large a definition


async def test_other_bodies_are_not_parameters(described: Rpc) -> None:
    response = await described.http.post("/", params=DESCRIBE, json={"Name": "other"})
    assert success(response)["Name"] == "f"


@pytest.mark.parametrize("value", ["True", "true", "TRUE", "False", "false", ""])
async def test_booleans_in_every_spelling(described: Rpc, value: str) -> None:
    await described.call("StartExecution", FlowName="f", ExecutionName="e")
    [row] = (await described.call("ListExecutions", FlowName="f", MetadataOnly=value))["Executions"]
    assert (row["FlowDefinition"] == "") is (value.lower() == "true")


async def test_an_invalid_boolean(described: Rpc) -> None:
    await described.refused("ListExecutions", 400, "InvalidArgument", FlowName="f", MetadataOnly="yes")


@pytest.mark.parametrize("value", ["1.5", "1_0", " 1", "+1", "one", "0x1", "１", "9" * 19, "1e1"])
async def test_an_invalid_number(described: Rpc, value: str) -> None:
    await described.refused("ListFlows", 400, "InvalidArgument", Limit=value)


async def test_pythons_text_for_none(described: Rpc) -> None:
    """The classic SDK sends the text `None` for a parameter set to None."""
    body = await described.call("StartExecution", FlowName="f", ExecutionName="e", Input="None")
    assert body["Input"] == ""
    flows = await described.call("ListFlows", Limit="None", NextToken="None", ResourceGroupId="None")
    assert [flow["Name"] for flow in flows["Flows"]] == ["f"]
    nothing = dict.fromkeys(("NextToken", "Limit", "Status", "StartedTimeBegin", "ExecutionNamePrefix"), "None")
    listed = await described.call("ListExecutions", FlowName="f", **nothing, StartedTimeEnd="None", MetadataOnly="None")
    assert [execution["Name"] for execution in listed["Executions"]] == ["e"]
    history = await described.call("GetExecutionHistory", FlowName="f", ExecutionName="e", NextToken="None")
    assert history["Events"]
    created = await described.call("CreateFlow", **{**FLOW, "Name": "g"}, Description="None", RoleArn="None")
    assert (created["Description"], created["RoleArn"]) == ("", "")
    started = await described.call("StartExecution", FlowName="g", ExecutionName="None", CallbackFnFTaskToken="None")
    assert started["Name"] != "None"
    await described.refused("DescribeFlow", 400, "MissingRequiredParams", Name="None")


async def test_request_ids(described: Rpc) -> None:
    body = await described.call("ListFlows")
    assert re.fullmatch(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", body["RequestId"])
    assert body["RequestId"] != (await described.call("ListFlows"))["RequestId"]
    assert (await described.call("ListFlows", RequestId="mine"))["RequestId"] == "mine"
    assert (await described.call("ListFlows", RequestId="None"))["RequestId"] != "None"
    response = await described.send("DescribeFlow", RequestId="mine", Name="none")
    assert response.json()["RequestId"] == response.headers["x-request-id"] == "mine"
    for odd in ("中", "x" * 129, "a\nb", "a b", "-"):
        assert (await described.call("ListFlows", RequestId=odd))["RequestId"] != odd


async def test_errors_look_as_sdks_expect_them(described: Rpc) -> None:
    response = await described.send("DescribeFlow", Name="none")
    assert set(response.json()) == {"RequestId", "HostId", "Code", "Message", "Recommend"}
    assert response.json()["HostId"] == "127.0.0.1:8080"
    assert "none" in fault(response, 404, "FlowNotExists")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_other_methods_do_nothing(described: Rpc, method: str) -> None:
    response = await described.http.request(method, "/", params={"Action": "DeleteFlow", "Name": "f"})
    assert response.status_code == 405
    assert response.headers["allow"]
    assert "json" in response.headers["content-type"]
    assert "access-control-allow-origin" not in response.headers
    await described.call("DescribeFlow", Name="f")


async def test_head_is_answered_as_get(described: Rpc) -> None:
    response = await described.http.head("/", params=DESCRIBE)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert (await described.http.head("/", params={**DESCRIBE, "Name": "none"})).status_code == 404


async def test_a_database_that_is_down_is_a_503(
    described: Rpc, app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise OperationalError("SELECT", None, Exception("the server closed the connection"))

    monkeypatch.setattr(app.state.operations.flows, "describe", away, raising=False)
    await described.refused("DescribeFlow", 503, "ServiceUnavailable", Name="f")


async def test_a_server_error_is_a_plain_500(described: Rpc, app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.state.operations.flows, "describe", None, raising=False)
    message = await described.refused("DescribeFlow", 500, "InternalServerError", Name="f")
    assert "NoneType" not in message
    await described.call("ListFlows")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:18802", "http://127.0.0.1:18802", "localhost", "cn-hangzhou.fnf.aliyuncs.com", "[::1]:80"]
)
async def test_hosts_that_local_clients_send(described: Rpc, host: str) -> None:
    assert success(await described.http.get("/", params=DESCRIBE, headers={"Host": host}))["Name"] == "f"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "["},
        {"Host": "a b"},
        {"Host": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_an_open_server_refuses_other_hosts(described: Rpc, headers: dict[str, str]) -> None:
    deletion = {"Action": "DeleteFlow", "Name": "f"}
    fault(await described.http.get("/", params=deletion, headers=headers), 403, "AccessDenied")
    await described.call("DescribeFlow", Name="f")


async def test_further_hosts_may_be_allowed(sqlite_url: str) -> None:
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, allowed_hosts=["flows"]))
    async with running_rpc(app) as rpc:
        success(await rpc.http.get("/?Action=ListFlows", headers={"Host": "flows:8080"}))
        fault(await rpc.http.get("/?Action=ListFlows", headers={"Host": "other"}), 403, "AccessDenied")


async def test_definitions_may_be_json(rpc: Rpc) -> None:
    text = json.dumps({"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}, indent=2)
    assert (await rpc.create_flow("f", text))["Definition"] == text


async def test_a_refused_request_writes_nothing(rpc: Rpc) -> None:
    await rpc.refused("CreateFlow", 400, "InvalidArgument", Name="a b", Definition=WAIT, Type="FDL")
    await rpc.refused("CreateFlow", 400, "InvalidArgument", Name="f", Definition="{", Type="FDL")
    await rpc.refused("CreateFlow", 400, "InvalidArgument", Name="f", Definition=WAIT, Type="DAG")
    await rpc.refused("CreateFlow", 400, "MissingRequiredParams", Name="f", Definition=WAIT)
    assert (await rpc.call("ListFlows"))["Flows"] == []
