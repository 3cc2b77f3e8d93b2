"""Encryption of everything that is secret in the database, its keys' replacement and loss, beside real servers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from aliyunsdkcore.client import AcsClient
from aliyunsdkfnf.request.v20190315.ListFlowsRequest import ListFlowsRequest

from flowserver.base.encryption import PREFIX, new_key
from flowserver.client import Client
from flowserver.store.encrypted_values import encrypted_values
from tests.api.rest.conftest import CALLBACK
from tests.cli.conftest import one_line
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Files with a first key, with a second one, and with both."""
    first, second = new_key(), new_key()
    made = {"first": [first], "second": [second], "both": [second, first]}
    for name, keys in made.items():
        (tmp_path / name).write_text("\n".join(keys))
        (tmp_path / name).chmod(0o600)
    return tmp_path / "first", tmp_path / "second", tmp_path / "both"


def stored(database) -> dict[str, str]:
    return {
        each.place: each.stored for each in database.run_read(lambda connection: list(encrypted_values(connection)))
    }


def signed(server: ServerProcess, key: dict[str, str]) -> None:
    """Make a request that only the key's secret can sign."""
    client = AcsClient(key["accessKeyId"], key["accessKeySecret"], "cn-hangzhou")
    client.add_endpoint("cn-hangzhou", "fnf", server.url.removeprefix("http://"))
    assert "Flows" in json.loads(client.do_action_with_exception(ListFlowsRequest()))


def test_secrets_are_encrypted_and_their_key_is_replaced(run, sqlite_url, sqlite_database, files):
    first, second, both = files
    at = ("--database-url", sqlite_url)
    key = json.loads(run("keys", "create", *at, "-o", "json").stdout)
    place = f"access_keys/{key['accessKeyId']}"
    with ServerProcess(sqlite_url, "--secrets-key-file", str(first)) as server:
        signed(server, key)
        assert stored(sqlite_database)[place] == key["accessKeySecret"]
        rekeyed = run("secrets", "rekey", *at, "--secrets-key-file", first)
        assert rekeyed.stdout == "encrypted 1 with the first key\n"  # the key of task tokens was new, so it was already
        assert all(text.startswith(PREFIX) for text in stored(sqlite_database).values())
        headers = {"Authorization": f"Bearer {key['bearerToken']}"}
        with httpx.Client(base_url=server.url, trust_env=False, headers=headers) as client:
            client.put("/v1/secrets/SHOP", json={"value": "hunter2"}).raise_for_status()
    before = stored(sqlite_database)
    assert run("secrets", "rekey", *at, "--secrets-key-file", first).stdout == "encrypted 0 with the first key\n"
    assert stored(sqlite_database) == before

    refused = run("secrets", "rekey", *at, "--secrets-key-file", second)
    assert (refused.exit_code, "nothing was changed: no key decrypts 3 of the secrets" in one_line(refused)) == (
        5,
        True,
    )
    assert stored(sqlite_database) == before
    assert run("secrets", "rekey", *at, "--secrets-key-file", both).stdout == "encrypted 3 with the first key\n"
    assert stored(sqlite_database) != before
    with ServerProcess(sqlite_url, "--secrets-key-file", str(second)) as server:
        signed(server, key)


def test_what_is_encrypted_needs_its_key(run, sqlite_url, sqlite_database, files):
    first, second, _ = files
    at = ("--database-url", sqlite_url)
    assert run("secrets", "rekey", *at).exit_code == 2
    made = run("keys", "create", *at, "--secrets-key-file", first)
    assert made.exit_code == 0
    assert all(text.startswith(PREFIX) for text in stored(sqlite_database).values())
    refused = run("keys", "create", *at)
    assert (refused.exit_code, "--secrets-key-file" in one_line(refused)) == (2, True)
    assert run("keys", "rotate-tokens", "add", *at, "--secrets-key-file", first).exit_code == 0
    assert run("keys", "rotate-tokens", "use", *at, "--secrets-key-file", second).exit_code == 2
    for key in ((), ("--secrets-key-file", second)):
        started = run("serve", *at, *key)
        assert (started.exit_code, "no key that decrypts them" in one_line(started)) == (5, True)

    unchecked = run("doctor", *at)
    assert (unchecked.exit_code, "encrypted secrets: 2, not checked" in unchecked.stdout) == (0, True)
    assert run("doctor", *at, "--secrets-key-file", first).exit_code == 0
    sick = run("doctor", *at, "--secrets-key-file", second)
    assert (sick.exit_code, "  secrets/task-tokens" in sick.stdout) == (1, True)


def test_a_start_with_a_key_says_that_the_database_needs_it_and_there_is_a_way_back(run, sqlite_url, files):
    """A server's first start makes the key of task tokens, and encrypts it if it has a key."""
    first, _, _ = files
    at = ("--database-url", sqlite_url)
    with ServerProcess(sqlite_url, "--secrets-key-file", str(first)) as server:
        httpx.put(f"{server.url}/v1/secrets/SHOP", json={"value": "hunter2"}, trust_env=False).raise_for_status()
    assert "Secrets encrypted with the secrets key: from now on this database needs it" in server.log
    refused = one_line(run("serve", *at))
    assert "secrets rekey --secrets-key-file FILE --drop-unreadable" in refused
    refused = one_line(run("keys", "create", *at))
    assert "since a server or command had a key" in refused
    assert "secrets rekey --decrypt" in refused
    refused = run("secrets", "rekey", *at, "--secrets-key-file", first, "--decrypt")
    assert (refused.exit_code, "never stored in clear text, and there are 1" in one_line(refused)) == (5, True)
    with ServerProcess(sqlite_url, "--secrets-key-file", str(first)) as server:
        httpx.delete(f"{server.url}/v1/secrets/SHOP", trust_env=False).raise_for_status()
    decrypted = run("secrets", "rekey", *at, "--secrets-key-file", first, "--decrypt")
    assert decrypted.stdout == "decrypted 1; the database needs no key\n"
    with ServerProcess(sqlite_url) as server:
        assert httpx.get(f"{server.url}/v1/flows", trust_env=False).status_code == 200
    assert run("keys", "create", *at).exit_code == 0


def test_a_lost_key_costs_what_it_encrypted(run, sqlite_url, sqlite_database, files):
    first, second, _ = files
    at = ("--database-url", sqlite_url)
    key_id = json.loads(run("keys", "create", *at, "--secrets-key-file", first, "-o", "json").stdout)["accessKeyId"]
    dropped = run("secrets", "rekey", *at, "--secrets-key-file", second, "--drop-unreadable")
    assert dropped.stdout.splitlines() == [f"deleted access_keys/{key_id}", "encrypted 0 with the first key"]
    key = json.loads(run("keys", "create", *at, "--secrets-key-file", second, "-o", "json").stdout)
    with ServerProcess(sqlite_url, "--secrets-key-file", str(second)) as server:
        signed(server, key)
        assert httpx.get(f"{server.url}/v1/flows", trust_env=False).status_code == 401


def test_the_key_of_task_tokens_is_replaced_while_tasks_wait(run, sqlite_url):
    """A token stays valid until its key is dropped; then the task has another."""
    with FunctionServer(lambda call: {}) as functions:
        with _client(sqlite_url) as client:
            client.put("/v1/functions/shop/ask", json={"url": f"{functions.url}/ask"}).raise_for_status()
            client.put("/v1/flows/order", json={"definition": CALLBACK}).raise_for_status()
            for name in ("one", "two"):
                client.post("/v1/flows/order/executions", json={"name": name}).raise_for_status()
                with Client(str(client.base_url)) as follower:
                    assert any(event.type == "TaskSubmitted" for event in follower.events("order", name))
            old = _tokens(client)
        run("keys", "rotate-tokens", "add", "--database-url", sqlite_url)
        with _client(sqlite_url) as client:
            assert _tokens(client) == old
        run("keys", "rotate-tokens", "use", "--database-url", sqlite_url)
        with _client(sqlite_url) as client:
            new = _tokens(client)
            assert new["two"] != old["two"]
            assert _succeed(client, old["one"]) == 200
        dropped = run("keys", "rotate-tokens", "drop", "--database-url", sqlite_url)
        assert dropped.stdout == "one key is known from the next start on\n"
        with _client(sqlite_url) as client:
            assert _tokens(client) == {"two": new["two"]}
            assert [_succeed(client, token) for token in (old["two"], new["two"])] == [400, 200]


@contextmanager
def _client(database_url: str) -> Iterator[httpx.Client]:
    """A client of a server that runs meanwhile."""
    with ServerProcess(database_url) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client


def _tokens(client: httpx.Client) -> dict[str, str]:
    """The token of each waiting task, by the name of its execution."""
    found = client.get("/v1/tasks", params={"flow": "order"}).raise_for_status().json()["tasks"]
    return {task["executionName"]: task["taskToken"] for task in found}


def _succeed(client: httpx.Client, token: str) -> int:
    return client.post("/v1/tasks/succeed", json={"taskToken": token, "output": {}}).status_code
