"""Hosted functions as their callers see them: tutorial handlers, results, failures, time-outs, context, logs."""

import json
import logging
from dataclasses import replace
from uuid import UUID

import httpx
import pytest
from yarl import URL

from flowserver.base.limits import Limits
from flowserver.base.signed_messages import signer_of
from flowserver.hosting.errors import HostingMistake
from flowserver.hosting.http_app import Admission, build_app
from flowserver.hosting.serving import Choices, admit
from flowserver.invokers.calls import Failed, Invocation, Replied
from flowserver.invokers.replies import classify_reply
from flowserver.invokers.request_bytes import lasting_head, write_request
from tests.hosting.tutorial_handlers import ECHO, GET_JOB_STATUS, START_JOB

INVOKE = "/2016-08-15/services/{}/functions/{}/invocations"


def as_the_engine_reads(reply):
    call = Invocation("s", "", "f", "{}", False, None, "k", 0, 1000, "flow", "run", "Step")
    return classify_reply(call, reply.status_code, reply.headers, reply.content, Limits())


@pytest.fixture
def tutorials(host, client_of):
    files = {"start_job.py": START_JOB, "get_job_status.py": GET_JOB_STATUS, "index.py": ECHO}
    functions = {
        "fnf-demo/StartJob": "start_job.py:handler",
        "fnf-demo/GetJobStatus": "get_job_status.py:handler",
        "fnf-demo/echo": "index.py:handler",
    }
    return client_of(host(files, functions))


@pytest.fixture
def call(host, client_of):
    """Host `def handler` and call it once."""

    async def host_and_call(text):
        hosted = host({"index.py": text}, {"s/f": "index.py:handler"})
        return await client_of(hosted).post("/s/f", content=b"{}")

    return host_and_call


async def test_only_signed_calls_where_they_must_be(host):
    """Hooks, too; the signature is over the body, or over nothing."""
    signer, other = (signer_of(f"whsec_{letter * 32}") for letter in "AB")
    hosted = host(
        {"index.py": f"{ECHO}def stop(context): pass\n"},
        {"s/f": {"handler": "index.py:handler", "preStop": "index.py:stop"}},
    )
    transport = httpx.ASGITransport(build_app(hosted, Admission(signer=signer)))
    async with httpx.AsyncClient(transport=transport, base_url="http://hosting") as client:
        good = signer.headers_of("call-1", b'{"a": 1}')
        assert (await client.post("/s/f", content=b'{"a": 1}', headers=good)).content == b'{"a": 1}'
        stale = signer.headers_of("call-1", b'{"a": 1}', 1_700_000_000)
        for headers in ({}, other.headers_of("call-1", b'{"a": 1}'), good | {"Webhook-Id": "call-2"}, stale):
            refused = await client.post("/s/f", content=b'{"a": 1}', headers=headers)
            assert (refused.status_code, refused.json()["ErrorCode"]) == (403, "AccessDenied")
        assert (await client.post("/s/f", content=b'{"a": 2}', headers=good)).status_code == 403
        assert (await client.get("/s/f/pre-stop")).status_code == 403
        assert (await client.get("/s/f/pre-stop", headers=signer.headers_of("stop-1", b""))).status_code == 200


def test_signing_secrets_do_for_an_address_beyond_loopback(tmp_path):
    (tmp_path / "signing").write_text(f"whsec_{'A' * 32}")
    admitted = admit("192.0.2.1", Choices(signing_secrets_file=tmp_path / "signing"))
    assert (admitted.secret, admitted.signer) == (None, signer_of(f"whsec_{'A' * 32}"))
    with pytest.raises(HostingMistake, match="without a secret"):
        admit("192.0.2.1", Choices())
    with pytest.raises(HostingMistake, match="No such file"):
        admit("127.0.0.1", Choices(signing_secrets_file=tmp_path / "none"))


async def test_start_job(tutorials):
    reply = await tutorials.post("/fnf-demo/StartJob", content=b"{}")
    assert reply.status_code == 200
    assert UUID(reply.json()["job_id"])


@pytest.mark.parametrize(("delay", "status"), [(20, "running"), (-1, "success")])
async def test_get_job_status(tutorials, delay, status):
    event = {"job_id": "j", "delay": delay, "try_count": 2}
    reply = await tutorials.post(INVOKE.format("fnf-demo", "GetJobStatus"), json=event)
    assert as_the_engine_reads(reply) == Replied({"job_id": "j", "job_status": status, "try_count": 3})


async def test_tutorial_handler_that_raises(tutorials):
    reply = await tutorials.post("/fnf-demo/GetJobStatus", json={})
    assert as_the_engine_reads(reply).error == "KeyError"


@pytest.mark.parametrize("event", [b"", b"{}", b'{"taskToken": "t", "n": 12345678901234567890}', b"\xff\x00"])
async def test_echo_returns_every_byte(tutorials, event):
    for path in ("/fnf-demo/echo", INVOKE.format("fnf-demo", "echo"), INVOKE.format("fnf-demo.LATEST", "echo")):
        reply = await tutorials.post(path, content=event)
        assert (reply.status_code, reply.content) == (200, event)
        assert "x-fc-error-type" not in reply.headers


@pytest.mark.parametrize("path", ["/fnf-demo/none", "/other/echo", INVOKE.format("fnf-demo", "none")])
async def test_unknown_function(tutorials, path):
    reply = await tutorials.post(path, content=b"{}")
    assert reply.status_code == 404
    assert reply.json()["ErrorCode"] == "FunctionNotFound"
    assert as_the_engine_reads(reply).error == "FC.FunctionNotFound"


@pytest.mark.parametrize(
    ("returned", "body"),
    [
        ("{'a': [1, None, '中']}", '{"a": [1, null, "中"]}'.encode()),
        ("[1, True]", b"[1, true]"),
        ("'{\"k\": 1}'", b'{"k": 1}'),
        ("'中'", "中".encode()),
        ("b'\\xff'", b"\xff"),
        ("None", b"null"),
        ("1.5", b"1.5"),
        ("2 ** 70", b"1180591620717411303424"),
        ("''", b""),
    ],
)
async def test_results(call, returned, body):
    reply = await call(f"def handler(event, context): return {returned}")
    assert (reply.status_code, reply.content) == (200, body)
    assert reply.headers["content-type"] == "application/octet-stream"


async def test_exception_becomes_the_documented_error_document(call, tmp_path):
    reply = await call(
        "class CardDeclined(Exception): ...\n"
        "def charge():\n"
        "    raise CardDeclined('no money')\n"
        "def handler(event, context):\n"
        "    charge()\n"
    )
    assert reply.status_code == 200
    assert reply.headers["x-fc-error-type"] == "UnhandledInvocationError"
    assert reply.headers["content-type"] == "application/json"
    file = f'File "{tmp_path.resolve() / "index.py"}"'
    document = {
        "errorMessage": "no money",
        "errorType": "CardDeclined",
        "stackTrace": [
            [file, "line 5", "in handler", "charge()"],
            [file, "line 3", "in charge", "raise CardDeclined('no money')"],
        ],
    }
    assert reply.json() == document
    result = as_the_engine_reads(reply)
    assert (result.error, json.loads(result.cause)) == ("CardDeclined", document)


async def test_a_traceback_shows_the_code_that_ran(host, client_of, tmp_path):
    files = {"index.py": "import kept_rules\ndef handler(event, context):\n    kept_rules.check()\n"}
    files["kept_rules.py"] = "def check():\n    raise ValueError('too much')\n"
    client = client_of(host(files, {"s/f": "index.py:handler"}))
    for name in files:
        (tmp_path / name).write_text("# edited\n" * 9)
    reply = await client.post("/s/f", content=b"{}")
    assert [each[-1] for each in reply.json()["stackTrace"]] == ["kept_rules.check()", "raise ValueError('too much')"]


@pytest.mark.parametrize("returned", ["{1, 2}", "context", "b'a'.decode", "'\\ud800'"])
async def test_result_that_cannot_be_sent(call, returned):
    result = as_the_engine_reads(await call(f"def handler(event, context): return {returned}"))
    assert result.error in {"TypeError", "UnicodeEncodeError"}


async def test_handler_with_the_wrong_signature(call):
    assert as_the_engine_reads(await call("def handler(): ...")).error == "TypeError"


async def test_handler_that_ends_the_process(call):
    reply = await call("import sys\ndef handler(event, context): sys.exit(3)")
    assert reply.json() == {"errorMessage": "Process exited unexpectedly before completing request"}
    assert as_the_engine_reads(reply).error == "FC.Unknown"


async def test_handler_that_exceeds_its_timeout(host, client_of):
    text = "import threading\ndef handler(event, context): threading.Event().wait()"
    hosted = host({"hang.py": text}, {"s/f": "hang.py:handler"})
    hasty = {title: replace(function, timeout_seconds=0.05) for title, function in hosted.items()}
    reply = await client_of(hasty).post("/s/f")
    assert reply.headers["x-fc-error-type"] == "UnhandledInvocationError"
    assert reply.json() == {"errorMessage": "Function timed out after 0.05 seconds"}
    assert as_the_engine_reads(reply) == Failed("FC.Unknown", reply.text.replace(": ", ":"))


async def test_module_state_lasts_from_call_to_call(host, client_of):
    text = "calls = 0\ndef handler(event, context):\n    global calls\n    calls += 1\n    return {'calls': calls}"
    client = client_of(host({"count.py": text}, {"s/a": "count.py:handler", "s/b": "count.py:handler"}))
    assert [(await client.post(path)).json()["calls"] for path in ("/s/a", "/s/a", "/s/b")] == [1, 2, 1]


async def test_context(host, client_of):
    text = """
def handler(event, context):
    keys = context.credentials
    return {
        "request_id": context.request_id, "region": context.region, "account_id": context.account_id,
        "function": [getattr(context.function, k) for k in ("name", "handler", "memory", "timeout")],
        "service": [getattr(context.service, k) for k in ("name", "version_id", "qualifier")],
        "logs": [context.service.log_project, context.service.log_store],
        "keys": [keys.access_key_id, keys.access_key_secret, keys.security_token],
        "logger": context.logger.name,
    }
"""
    client = client_of(host({"show.py": text}, {"s/f": {"handler": "show.py:handler", "timeoutSeconds": 7}}))
    reply = await client.post(INVOKE.format("s.prod", "f"), headers={"X-Fc-Request-Id": "id-1"})
    assert reply.headers["x-fc-request-id"] == "id-1"
    assert reply.json() == {
        "request_id": "id-1",
        "region": "",
        "account_id": "",
        "function": ["f", "show.handler", 128, 7],
        "service": ["s", "LATEST", "prod"],
        "logs": ["", ""],
        "keys": ["", "", ""],
        "logger": "root",
    }


async def test_context_of_a_step_s_call(host, client_of):
    text = """
def handler(event, context):
    names = ("request_id", "flow_name", "execution_name", "step_name", "idempotency_key", "attempt")
    return [getattr(context, name) for name in names]
"""
    client = client_of(host({"show.py": text}, {"s/f": "show.py:handler"}))
    call = Invocation("s", "", "f", "{}", None, "key", 3, 1000, "order", "run-1", "pay", request_id="id-1")
    request = write_request(lasting_head(URL("http://hosting/s/f"), {}), call)
    lines = request.decode().partition("\r\n\r\n")[0].split("\r\n")[1:]
    reply = await client.post("/s/f", headers=dict(line.split(": ", 1) for line in lines), content=b"{}")
    assert reply.json() == ["id-1", "order", "run-1", "pay", "key", 3]
    assert (await client.post("/s/f")).json()[1:] == ["", "", "", "", 0]


async def test_request_id_and_qualifier_have_defaults(host, client_of):
    text = "def handler(event, context): return [context.request_id, context.service.qualifier]"
    client = client_of(host({"show.py": text}, {"s/f": "show.py:handler"}))
    reply = await client.post("/s/f")
    request_id, qualifier = reply.json()
    assert (str(UUID(request_id)), qualifier) == (reply.headers["x-fc-request-id"], "LATEST")
    assert (await client.post("/s/f", headers={"X-Fc-Qualifier": "prod"})).json()[1] == "prod"


async def test_log_lines(host, client_of, caplog):
    text = "import logging\ndef handler(event, context):\n    logging.info('at work')\n    return 1 / int(event)"
    client = client_of(host({"log.py": text}, {"s/f": "log.py:handler"}))
    with caplog.at_level(logging.INFO):
        await client.post("/s/f", content=b"1", headers={"X-Fc-Request-Id": "id-1"})
        await client.post("/s/f", content=b"0", headers={"X-Fc-Request-Id": "id-2"})
    lines = [record.getMessage() for record in caplog.records if record.name in {"root", "flowserver.hosting"}]
    assert lines[:4] == [
        "FC Invoke Start RequestId: id-1",
        "at work",
        "FC Invoke End RequestId: id-1",
        "FC Invoke Start RequestId: id-2",
    ]
    assert json.loads(lines[5])["errorType"] == "ZeroDivisionError"
    assert lines[6] == "FC Invoke End RequestId: id-2, Error: Unhandled function error"


async def test_a_function_without_a_service(host, client_of):
    """Its service is written `-`, and empty in its context, as in the cloud."""
    text = 'def handler(event, context):\n    return {"service": context.service.name}\n'
    client = client_of(host({"a.py": text}, {"-/echo": "a.py:handler"}))
    for path in ("/-/echo", INVOKE.format("-", "echo")):
        assert (await client.post(path, content=b"{}")).json() == {"service": ""}
