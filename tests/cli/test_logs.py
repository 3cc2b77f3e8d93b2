"""The server's log: the format of its lines, what they say of requests and executions, and no secrets."""

import asyncio
import json
import logging
import sys
from queue import SimpleQueue

import httpx
import pytest

from flowserver.api.rpc.signed_texts import v1_signature, v1_string_to_sign
from flowserver.base.clock import SystemClock, format_instant
from flowserver.base.encryption import new_key
from flowserver.base.request_context import RequestContext
from flowserver.cli.logs import JsonFormatter, LineFormatter, set_up_logs, tells_of_a_fault
from flowserver.concurrency.threads import Threads
from tests.support.access_key import ACCESS_KEY_ID, SECRET, TOKEN, create_database_with_key
from tests.support.function_server import FunctionError, FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

PARKED = "execution %(execution_id)s is parked"


def _record(message, error=None, args=()):
    record = logging.LogRecord("flowserver.x", logging.WARNING, "", 0, message, args, error)
    record.created, record.msecs = 1_767_323_045.678, 678
    return record


def test_line_has_time_level_and_origin():
    assert LineFormatter().format(_record("hello")) == "2026-01-02T03:04:05.678Z WARNING flowserver.x: hello"


def test_no_text_of_a_client_begins_a_line():
    assert LineFormatter().format(_record("a\r\n2026 forged")).endswith("flowserver.x: a\\r\\n2026 forged")


def test_tracebacks_stay_readable():
    try:
        raise ValueError("why")
    except ValueError:
        text = LineFormatter().format(_record("failed", sys.exc_info()))
    assert text.splitlines()[1] == "Traceback (most recent call last):"
    assert text.splitlines()[-1] == "ValueError: why"


def test_requests_cut_off_by_the_shutdown_are_not_errors():
    cut_off, wrong = asyncio.CancelledError(), ValueError()
    assert not tells_of_a_fault(_record("failed", (type(cut_off), cut_off, None)))
    assert tells_of_a_fault(_record("failed", (type(wrong), wrong, None)))
    assert tells_of_a_fault(_record("said"))


def test_lines_name_the_request_that_they_belong_to():
    with RequestContext("r-1") as request:
        request.key_id = "key-1"
        human = LineFormatter().format(_record("request r-1 failed"))
        json_line = json.loads(JsonFormatter().format(_record("failed")))
    assert human.endswith("flowserver.x: request r-1 failed [key_id=key-1]")
    assert (json_line["request_id"], json_line["key_id"]) == ("r-1", "key-1")
    assert "request_id" not in json.loads(JsonFormatter().format(_record("later")))


async def test_lines_of_threads_name_the_request_for_which_they_work():
    threads = Threads("test")
    with RequestContext("r-1") as request:
        request.key_id = "key-1"
        line = json.loads(await threads.run(lambda: JsonFormatter().format(_record("a damaged row is left out"))))
    threads.close()
    assert (line["request_id"], line["key_id"]) == ("r-1", "key-1")


def test_a_json_line_is_one_line_in_ascii_with_fields_and_traceback():
    values = {"execution_id": "é\n\udc80", "error": ValueError("why")}
    try:
        raise ValueError("why")
    except ValueError:
        line = JsonFormatter().format(_record(PARKED, sys.exc_info(), (values,)))
    assert line.isascii()
    assert "\n" not in line
    read = json.loads(line)
    assert read.pop("exception").endswith("ValueError: why")
    assert read == {
        "time": "2026-01-02T03:04:05.678Z",
        "level": "WARNING",
        "logger": "flowserver.x",
        "message": "execution é\n\udc80 is parked",
        "execution_id": "é\n\udc80",
        "error": "why",
    }


@pytest.mark.parametrize(
    ("form", "is_terminal", "formatter"),
    [
        ("auto", True, LineFormatter),
        ("auto", False, JsonFormatter),
        ("human", False, LineFormatter),
        ("json", True, JsonFormatter),
    ],
)
def test_lines_are_for_people_on_a_terminal(monkeypatch, form, is_terminal, formatter):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    set_up_logs("warning", form)
    [handler] = logging.getLogger().handlers
    assert type(handler.formatter) is formatter


DEFINITION = """
version: v1
type: flow
steps:
  - {type: task, name: ask, resourceArn: 'acs:fc:::services/shop/functions/ask', pattern: waitForCallback,
     inputMappings: [{target: token, source: $context.task.token}]}
  - {type: task, name: charge, resourceArn: 'acs:fc:::services/shop/functions/charge'}
"""


def signed(**parameters):
    """The parameters of a request to RPC, with its signature."""
    every = {
        "AccessKeyId": ACCESS_KEY_ID,
        "Format": "JSON",
        "SignatureMethod": "HMAC-SHA1",
        "SignatureNonce": f"nonce-of-{parameters['Action']}",
        "SignatureVersion": "1.0",
        "Timestamp": format_instant(SystemClock().now_ms())[:19] + "Z",
        "Version": "2019-03-15",
        **parameters,
    }
    return every | {"Signature": v1_signature(SECRET, v1_string_to_sign("POST", every))}


def test_lines_of_a_server_hold_ids_and_no_secrets(sqlite_url):
    """At the level debug, where libraries speak, too; with one line for each request, from both processes."""
    create_database_with_key(sqlite_url)
    events, secrets_key = SimpleQueue(), new_key()

    def answer(call):
        events.put(call.event)
        return FunctionError("NoMoney", "answer-secret") if "charge" in call.function else {}

    headers = {"Authorization": f"Bearer {TOKEN}"}
    flags = ("--log-format", "json", "--log-level", "debug", "--access-log", "--processes", "2")
    with (
        FunctionServer(answer) as functions,
        ServerProcess(sqlite_url, *flags, environment={"FLOWSERVER_SECRETS_KEY": secrets_key}) as server,
        httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        client.put("/v1/secrets/CODE", json={"value": "named-secret"}).raise_for_status()
        for name in ("ask", "charge"):
            function = {
                "url": f"{functions.url}/{name}?code=query-secret",
                "headers": {"X-Key": "header-secret", "X-Code": "${secret:CODE}"},
            }
            client.put(f"/v1/functions/shop/{name}", json=function).raise_for_status()
        client.put("/v1/flows/pay", content=DEFINITION, headers={"Content-Type": "application/yaml"}).raise_for_status()
        start = {"name": "one", "input": {"pin": "input-secret"}}
        client.post("/v1/flows/pay/executions", json=start).raise_for_status()
        token = events.get(timeout=PATIENCE_SECONDS)["token"]
        assert client.get(f"/v1/{token}?trace=url-secret").status_code == 404
        assert client.get("/v1/flows", headers={"Authorization": "Bearer wrong-secret"}).status_code == 401
        sent = signed(Action="ReportTaskSucceeded", TaskToken=token, Output="{}")
        reported = client.post("/", data=sent)
        assert reported.status_code == 200, reported.text
        assert client.get("/v1/flows/pay/executions/one?wait=60").json()["status"] == "Failed"
        assert client.get("/healthz").status_code == 200
        assert functions.calls[-1].headers["x-code"] == "named-secret"

    inputs = [f"{place}-secret" for place in ("answer", "query", "header", "input", "url", "wrong", "named")]
    assert [
        each for each in (SECRET, TOKEN, token, sent["Signature"], secrets_key, *inputs) if each in server.log
    ] == []
    lines = [json.loads(line) for line in server.log.splitlines()]
    [failed] = [line for line in lines if line.get("error") == "NoMoney"]
    assert failed["request_id"] == functions.calls[-1].headers["x-fc-request-id"]
    assert (failed["flow"], failed["execution"], failed["step"], failed["attempt"]) == ("pay", "one", "charge", 1)
    assert failed["execution_id"]

    requests = {line["route"]: line for line in lines if line["logger"] == "flowserver.access"}
    assert {"put_flow", "start_execution", "ReportTaskSucceeded", "healthz", "unknown"} <= requests.keys()
    line = requests["ReportTaskSucceeded"]
    assert (line["method"], line["status"], line["key_id"]) == ("POST", 200, ACCESS_KEY_ID)
    assert (line["request_id"], line["bytes"]) == (reported.headers["x-request-id"], len(reported.content))
    assert line["ms"] > 0
