"""Secrets from outside: a function receives them, and the server shows them nowhere."""

from pathlib import Path
from urllib.parse import parse_qs, unquote

import httpx

from flowserver.base.encryption import new_key
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

VALUE, REPLACED = "hunter2/First&Value", "hunter2-second"
FLOW = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
  - type: task
    name: lost
    resourceArn: acs:fc:::services/shop/functions/lost
    catch:
      - {errors: [FnF.ALL], goto: done}
  - type: pass
    name: done
"""


def test_a_function_receives_secrets_and_nothing_shows_them(tmp_path: Path) -> None:
    with (
        FunctionServer(lambda call: {}) as functions,
        ServerProcess(
            f"sqlite:///{tmp_path}/flows.db", "--log-level", "debug", environment={"FLOWSERVER_SECRETS_KEY": new_key()}
        ) as server,
        httpx.Client(base_url=server.url, trust_env=False) as client,
    ):
        _set(server, "SHOP", VALUE)
        url = f"{functions.url}/charge/${{secret:SHOP}}?k=${{secret:SHOP}}"
        headers = {"Authorization": "Bearer ${secret:SHOP}", "X-Plain": "p"}
        _put(
            client,
            "shop/charge",
            {"url": url, "headers": headers, "initializeUrl": f"{functions.url}/i/${{secret:SHOP}}"},
        )
        _put(client, "shop/lost", {"url": "http://127.0.0.1:1/${secret:SHOP}", "headers": headers})
        client.put("/v1/flows/order", content=FLOW, headers={"Content-Type": "application/yaml"}).raise_for_status()
        shown = [_run(client, "first")]
        initialized, called = functions.calls
        assert unquote(initialized.function) == f"i/{VALUE}"
        path, _, query = called.function.partition("?")
        assert (path.count("/"), unquote(path)) == (1, f"charge/{VALUE}")
        assert parse_qs(query) == {"k": [VALUE]}
        assert called.headers["authorization"] == f"Bearer {VALUE}"
        assert called.headers["x-plain"] == "p"
        assert "FC.ServerError" in shown[0]

        _set(server, "SHOP", REPLACED)
        shown.append(_run(client, "second"))
        assert functions.calls[-1].headers["authorization"] == f"Bearer {REPLACED}"
        client.delete("/v1/secrets/SHOP", params={"force": "true"}).raise_for_status()
        shown.append(_run(client, "third"))
        assert "FnF.SecretNotFound" in shown[2]
        assert len(functions.calls) == 3
        shown += [client.get(path).text for path in ("/metrics", "/v1/functions", "/v1/secrets", "/v1/overview")]
        process = Path(f"/proc/{server.process.pid}/cmdline").read_text()
        _set(server, "KEPT", VALUE)
        shown += [process, server.log]
        database = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for text in shown:
        assert "hunter2" not in text
    assert b"hunter2" not in database
    assert b"fernet1:" in database


def _set(server: ServerProcess, name: str, value: str) -> None:
    """Set a secret as people do, from stdin."""
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        client.put(f"/v1/secrets/{name}", json={"value": value}).raise_for_status()


def _put(client: httpx.Client, function: str, wanted: dict[str, object]) -> None:
    client.put(f"/v1/functions/{function}", json=wanted).raise_for_status()


def _run(client: httpx.Client, name: str) -> str:
    """Start an execution and wait for its end; returns what the server shows of it."""
    path = "/v1/flows/order/executions"
    started = client.post(path, json={"name": name}, params={"wait": 30}).raise_for_status()
    return started.text + client.get(f"{path}/{name}/events").text + client.get(f"{path}/{name}/steps").text
