"""Function Compute's own SDKs, against servers without and with access keys: invocations and configurations."""

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.api.fc.signing import signed_headers
from tests.sdk.client import FC_OPEN_NODE, FC_SDKS, OPEN_SDKS, Access, Sdk, SdkClient, SdkError, SdkProcess
from tests.support.access_key import TOKEN
from tests.support.function_server import Call, FunctionError, FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

ECHO = {"serviceName": "fc", "functionName": "echo"}
FAIL = {"serviceName": "fc", "functionName": "fail"}


def _answer(call: Call) -> Any:
    return call.body if call.function == "fc/echo" else FunctionError("CardDeclined", "no money")


@pytest.fixture(scope="module", autouse=True)
def functions(servers: dict[str, ServerProcess]) -> Iterator[FunctionServer]:
    """`fc/echo`, which returns every byte, and `fc/fail`, known to both servers."""
    with FunctionServer(_answer) as server:
        server.register(servers["open"].url, "fc/echo", "fc/fail")
        server.register(servers["keyed"].url, "fc/echo", "fc/fail", token=TOKEN)
        yield server


@pytest.fixture(params=FC_SDKS, ids=str)
def sdk(request: pytest.FixtureRequest) -> Sdk:
    return request.param


@pytest.fixture(params=["opened", "keyed"])
def client(request: pytest.FixtureRequest, sdk: Sdk, process_of: Callable[[Sdk], SdkProcess]) -> SdkClient:
    return SdkClient(process_of(sdk), request.getfixturevalue(request.param))


def invoke(
    client: SdkClient, payload: bytes, *, qualifier: str | None = None, headers: dict | None = None, **names: str
) -> tuple[bytes, dict]:
    encoded = base64.b64encode(payload).decode()
    reply = client.call("Invoke", **names, qualifier=qualifier, payload=encoded, headers=headers or {})
    return base64.b64decode(reply["data"]), reply["headers"]


def refusal(client: SdkClient, action: str, **parameters: object) -> SdkError:
    with pytest.raises(SdkError) as refused:
        client.call(action, **parameters)
    return refused.value


@pytest.mark.parametrize("payload", [b"{}", b"\x00\xff", "中".encode(), b"x" * 2**20])
def test_every_byte_is_returned(client: SdkClient, payload: bytes) -> None:
    data, headers = invoke(client, payload, **ECHO)
    is_text = client.process.sdk is FC_OPEN_NODE  # it sends events as text
    assert data == (payload.decode(errors="replace").encode() if is_text else payload)
    assert len(headers["x-fc-request-id"]) == 36


def test_a_qualifier_reaches_the_function(client: SdkClient, functions: FunctionServer) -> None:
    _, headers = invoke(client, b"{}", qualifier="prod", **ECHO)
    assert headers["x-fc-invocation-service-version"] == "prod"
    assert functions.calls[-1].headers["x-fc-qualifier"] == "prod"


def test_a_function_that_fails(client: SdkClient) -> None:
    """Python's SDK raises, Node's leaves errors to its caller."""
    if client.process.sdk.name == "fc2-python":
        failed = refusal(client, "Invoke", **FAIL, payload="", headers={})
        assert (failed.status, failed.code, failed.message) == (200, "", "no money")
        return
    data, headers = invoke(client, b"{}", **FAIL)
    assert headers["x-fc-error-type"] == "UnhandledInvocationError"
    assert json.loads(data) == {"errorType": "CardDeclined", "errorMessage": "no money"}


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ({"serviceName": "none", "functionName": "echo"}, "ServiceNotFound"),
        ({"serviceName": "fc", "functionName": "none"}, "FunctionNotFound"),
    ],
)
def test_functions_that_do_not_exist(client: SdkClient, names: dict[str, str], code: str) -> None:
    failed = refusal(client, "Invoke", **names, payload="e30=", headers={})
    assert (failed.status, failed.code, failed.raised) == (404, code, client.process.sdk.raises.format(code=code))


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
def test_unauthorized_callers(
    sdk: Sdk, process_of: Callable[[Sdk], SdkProcess], keyed: Access, change: dict, code: str
) -> None:
    client = SdkClient(process_of(sdk), replace(keyed, **change))
    failed = refusal(client, "Invoke", **ECHO, payload="e30=", headers={})
    assert (failed.status, failed.code) == (403, code)


def test_configurations(client: SdkClient) -> None:
    destination = {"onSuccess": {"destination": "acs:mns:cn-hangzhou:123:/queues/done/messages"}}
    for number, qualifier in enumerate(("LATEST", "prod")):
        names = {**ECHO, "qualifier": qualifier}
        config = {"statefulInvocation": True, "maxAsyncRetryAttempts": number, "destinationConfig": destination}
        put = client.call("PutAsyncConfig", **names, asyncConfig=config)
        assert put.items() >= config.items()
        assert (put["service"], put["function"], put["qualifier"]) == ("fc", "echo", qualifier)
        assert client.call("GetAsyncConfig", **names) == put
    first = client.call("ListAsyncConfigs", **ECHO, limit=1)
    second = client.call("ListAsyncConfigs", **ECHO, limit=1, nextToken=first["nextToken"])
    assert [config["qualifier"] for config in first["configs"] + second["configs"]] == ["LATEST", "prod"]
    assert "nextToken" not in second
    for qualifier in ("LATEST", "prod"):
        names = {**ECHO, "qualifier": qualifier}
        assert client.call("DeleteAsyncConfig", **names) == {}
        failed = refusal(client, "GetAsyncConfig", **names)
        assert (failed.status, failed.code) == (404, "AsyncConfigNotExists")


class Tasks:
    """Calls for asynchronous invocations of `fc/echo`, which the SDKs of 2016-08-15 do not have: signed here."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._base = "/2016-08-15/services/fc/functions/echo/stateful-async-invocations"

    def call(self, method: str, path: str = "") -> httpx.Response:
        keys = {"access_key_id": self._access.access_key_id, "secret": self._access.secret}
        url = f"http://{self._access.address}{self._base}{path}"
        headers = signed_headers(method, url, time.time_ns() // 1_000_000, **keys)
        return httpx.request(method, url, headers=headers, trust_env=False)

    def ended(self, name: str) -> dict:
        """The invocation once it has ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            found = self.call("GET", f"/{name}").json()
            if found["endTime"]:
                return found
        raise AssertionError(f"{name} does not end")


def test_asynchronous_invocations(client: SdkClient, unique: str) -> None:
    headers = {"X-Fc-Invocation-Type": "Async", "X-Fc-Stateful-Async-Invocation-Id": unique}
    data, answered = invoke(client, b'{"n": 1}', headers=headers, **ECHO)
    assert data == b""
    assert answered["x-fc-stateful-async-invocation-id"] == unique
    tasks = Tasks(client.access)
    found = tasks.ended(unique)
    assert (found["status"], found["requestId"]) == ("Succeeded", answered["x-fc-request-id"])
    assert (found["invocationPayload"], found["returnPayload"]) == ('{"n": 1}', '{"n": 1}')
    [listed] = tasks.call("GET", f"?invocationIdPrefix={unique}&status=Succeeded&limit=5").json()["invocations"]
    assert listed["invocationId"] == unique
    failed = refusal(client, "Invoke", **ECHO, payload="e30=", headers=headers)
    assert (failed.status, failed.code) == (409, "StatefulAsyncInvocationAlreadyExists")
    stopped = tasks.call("PUT", f"/{unique}")
    assert (stopped.status_code, stopped.json()["ErrorCode"]) == (400, "InvalidArgument")


def task_of(client: SdkClient, name: str, status: str, **names: str) -> dict:
    """The task once it has this status."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = client.call("GetTask", **names, task=name)
        if found["status"] == status:
            return found
    raise AssertionError(f"{name} does not become {status}")


@pytest.fixture(params=OPEN_SDKS, ids=str)
def open_sdk(request: pytest.FixtureRequest) -> Sdk:
    return request.param


@pytest.fixture(params=["opened", "keyed"])
def open_client(request: pytest.FixtureRequest, open_sdk: Sdk, process_of: Callable[[Sdk], SdkProcess]) -> SdkClient:
    return SdkClient(process_of(open_sdk), request.getfixturevalue(request.param))


def test_tasks_in_the_open_api(open_client: SdkClient, unique: str) -> None:
    names = ECHO | {"qualifier": "prod"}
    headers = {"X-Fc-Invocation-Type": "Async", "X-Fc-Stateful-Async-Invocation-Id": unique}
    invoke(open_client, b'{"n": 1}', headers=headers, **names)
    task = task_of(open_client, unique, "Succeeded", **names)
    assert (task["qualifier"], task["invocationPayload"], task["returnPayload"]) == ("prod", '{"n": 1}', '{"n": 1}')
    wanted = {"invocationIdPrefix": unique, "includePayload": True, "sortOrderByTime": "asc", "limit": 5}
    [listed] = open_client.call("ListTasks", **names, **wanted)["invocations"]
    assert (listed["invocationId"], listed["invocationPayload"]) == (unique, '{"n": 1}')
    functions = open_client.call("ListTaskFunctions", limit=100)["data"]
    assert {"serviceName": "fc", "functionName": "echo"} in functions
    failed = refusal(open_client, "StopTask", **names, task=unique)
    assert (failed.status, failed.code) == (400, "InvalidArgument")
    failed = refusal(open_client, "GetTask", **ECHO, task="none")
    assert (failed.status, failed.code) == (404, "StatefulAsyncInvocationNotFound")


def test_the_open_api_stops_a_task(open_client: SdkClient, unique: str) -> None:
    """A failing function is retried after pauses, each twice as long; it is stopped in such a pause."""
    open_client.call("PutAsyncConfig", **FAIL, qualifier="LATEST", asyncConfig={"maxAsyncRetryAttempts": 8})
    headers = {"X-Fc-Invocation-Type": "Async", "X-Fc-Stateful-Async-Invocation-Id": unique}
    invoke(open_client, b"{}", headers=headers, **FAIL)
    retrying = task_of(open_client, unique, "Retrying", **FAIL)
    assert json.loads(retrying["events"][-1]["eventDetail"]) == {"Error": "UnhandledInvocationError"}
    assert open_client.call("StopTask", **FAIL, task=unique) == {}
    assert task_of(open_client, unique, "Stopped", **FAIL)["endTime"] > 0
