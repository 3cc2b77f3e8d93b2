"""What a server with signing secrets sends, checked with the library of Standard Webhooks; and what may be called.

The server has two processes: these settings must reach the second, which makes the calls.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.function_server import Call, FunctionError, FunctionServer
from tests.support.push_server import PushServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
DEFINITION = """version: v1
type: flow
steps:
- type: task
  name: charge
  resourceArn: acs:fc:::services/shop/functions/charge
  retry: [{errors: [Busy], intervalSeconds: 1, maxAttempts: 1}]
"""


@pytest.fixture
def client(tmp_path: Path, sqlite_url: str) -> Iterator[httpx.Client]:
    (tmp_path / "signing").write_text(SECRET)
    options = ("--signing-secrets-file", str(tmp_path / "signing"), "--function-networks-denied", "203.0.113.0/24")
    with (
        ServerProcess(sqlite_url, "--processes", "2", *options) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_SECONDS) as client,
    ):
        yield client


def test_calls_hooks_and_pushes_are_signed(client: httpx.Client) -> None:
    calls: list[Call] = []

    def answer(call: Call) -> Any:
        calls.append(call)
        return FunctionError("Busy") if len(calls) == 2 else {}

    with FunctionServer(answer) as functions, PushServer() as pushes:
        function = {"url": f"{functions.url}/shop/charge", "initializeUrl": f"{functions.url}/shop/charge/initialize"}
        client.put("/v1/functions/shop/charge", json=function).raise_for_status()
        client.post("/v1/flows", json={"name": "f", "definition": DEFINITION}).raise_for_status()
        client.post("/v1/flows/f/executions", json={"name": "e", "input": {"名": "é"}}).raise_for_status()
        row = client.get("/v1/flows/f/executions/e", params={"wait": PATIENCE_SECONDS}).json()
        assert row["status"] == "Succeeded"

        client.put("/topics/news", content="<Topic/>").raise_for_status()
        subscription = f"<Subscription><Endpoint>{pushes.url}/hook</Endpoint></Subscription>"
        client.put("/topics/news/subscriptions/all", content=subscription).raise_for_status()
        message = "<Message><MessageBody>hello</MessageBody></Message>"
        client.post("/topics/news/messages", content=message).raise_for_status()
        push = pushes.next()

        client.put("/v1/functions/shop/charge", json={"url": "http://203.0.113.1/"}).raise_for_status()
        client.post("/v1/flows/f/executions", json={"name": "refused"}).raise_for_status()
        refused = client.get("/v1/flows/f/executions/refused", params={"wait": PATIENCE_SECONDS}).json()

    initialize, first, second = calls
    for sent, body in ((initialize, b""), (first, first.body), (second, second.body), (push, push.body.encode())):
        assert verified(body, sent.headers)
        assert not verified(body + b" ", sent.headers)
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == first.headers["idempotency-key"]
    assert (initialize.function, json.loads(first.body)) == ("shop/charge/initialize", {"名": "é"})
    assert (refused["status"], refused["error"]) == ("Failed", "FC.InvalidArgument")


def verified(body: bytes, headers: Any) -> bool:
    """By the published library; it reads the body as JSON, too, after it has found the signature good."""
    try:
        Webhook(SECRET).verify(body, dict(headers))
    except WebhookVerificationError:
        return False
    except json.JSONDecodeError:
        pass
    return True
