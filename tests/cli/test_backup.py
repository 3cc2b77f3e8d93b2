"""`flowserver backup`, and the restore of what it wrote: the drill of an operator."""

import re
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import httpx
import psycopg
import pytest
from sqlalchemy import insert, select

from flowserver.operations.access import make_access_key
from flowserver.store.access_keys import AccessKey, Admission, insert_access_key, read_admission
from flowserver.store.schema.sign_in_tables import sign_in_links
from flowserver.store.schema.tables import nonces
from flowserver.store.sql.database import Database
from tests.chaos.standby import PROGRAMS
from tests.cli.conftest import one_line
from tests.support.function_server import Call, FunctionServer
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment, path_with_flowserver

CALL = """
version: v1
type: flow
steps: [{type: task, name: call, resourceArn: "acs:fc:::services/shop/functions/charge"}]
"""


@pytest.fixture
def functions():
    with FunctionServer() as running:
        yield running


def start(client: httpx.Client, name: str) -> None:
    ended = client.post("/v1/flows/order/executions?wait=30", json={"name": name}).raise_for_status().json()
    assert ended["status"] == "Succeeded"


CHARGE = "/2016-08-15/services/shop/functions/charge"


def invoke(client: httpx.Client, name: str) -> None:
    """Invoke `charge` asynchronously, as a program does, and wait for the end."""
    headers = {"X-Fc-Invocation-Type": "Async", "X-Fc-Stateful-Async-Invocation-Id": name}
    client.post(f"{CHARGE}/invocations", headers=headers).raise_for_status()
    while (status := invocation_status(client, name)) not in ("Succeeded", "Failed"):
        pass
    assert status == "Succeeded"


def invocation_status(client: httpx.Client, name: str) -> str:
    answer = client.get(f"{CHARGE}/stateful-async-invocations/{name}").raise_for_status()
    return str(answer.json()["status"])


def test_a_server_that_runs_is_backed_up_and_restored_and_calls_since_are_listed(run, sqlite_url, tmp_path, functions):
    backup, place = tmp_path / "backup.db", ("--database-url", sqlite_url)
    with ServerProcess(sqlite_url) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        functions.register(server.url, "shop/charge")
        client.put("/v1/flows/order", json={"definition": CALL}).raise_for_status()
        start(client, "before")
        invoke(client, "receipt-before")
        made = run("backup", backup, *place)
        assert (made.exit_code, made.stderr) == (0, "")
        assert made.stdout.startswith(f"backed up {tmp_path / 'flowserver.db'} to {backup}: ")
        start(client, "after")
        invoke(client, "receipt-after")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.glob("backup.db*")] == ["backup.db"]
    assert run("doctor", "--deep", "--database-url", f"sqlite:///{backup}").exit_code == 0

    restored = run("restore", backup, *place)
    assert restored.exit_code == 0
    assert "1 executions have called functions since the backup" in restored.stdout
    assert "  order/after\n" in restored.stdout
    assert "1 asynchronous invocations have called functions since the backup" in restored.stdout
    assert "  shop/charge/receipt-after\n" in restored.stdout
    assert "before" not in restored.stdout.replace("before-restore", "").replace("the database before it", "")
    with ServerProcess(sqlite_url) as server:
        found = httpx.get(f"{server.url}/v1/flows/order/executions", trust_env=False).json()["executions"]
    assert [each["name"] for each in found] == ["before"]


def test_a_backup_replaces_no_file_and_leaves_none_behind(run, sqlite_url, tmp_path):
    place = ("--database-url", sqlite_url)
    taken = tmp_path / "taken"
    taken.write_text("keep")
    refused = run("backup", taken, *place)
    assert (refused.exit_code, one_line(refused)) == (
        5,
        f"flowserver: there is a file {taken}; choose another name",
    )
    assert taken.read_text() == "keep"
    missing = run("backup", tmp_path / "none" / "backup.db", *place)
    assert (missing.exit_code, "No such file or directory" in one_line(missing)) == (1, True)
    assert run("backup", tmp_path / "b.db", "--database-url", f"sqlite:///{tmp_path}/gone.db").exit_code == 3
    postgres = run("backup", tmp_path / "b.db", "--database-url", "postgresql://127.0.0.1:1/flows")
    assert postgres.exit_code in (2, 4)
    assert not (tmp_path / "b.db").exists()


def test_a_damaged_database_gives_no_backup(run, sqlite_url, tmp_path):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'executions'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("r+b") as raw:
        raw.seek((root - 1) * size)
        raw.write(b"\xff" * 100)
    refused = run("backup", tmp_path / "backup.db", "--database-url", sqlite_url)
    assert refused.exit_code == 1
    assert "there is no backup" in one_line(refused)
    assert list(tmp_path.glob("backup.db*")) == []


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "backup.md"

ASKS = """
version: v1
type: flow
steps:
- {type: task, name: ask, resourceArn: "acs:fc:::services/shop/functions/ask", pattern: waitForCallback,
   inputMappings: [{target: token, source: $context.task.token}]}
- {type: task, name: call, resourceArn: "acs:fc:::services/shop/functions/charge"}
"""


def run_page(number: int, folder: Path, **urls: str) -> str:
    """Run the lines of the page about PostgreSQL, its block of that number; returns what they print."""
    section = PAGE.read_text("utf-8").partition("## PostgreSQL")[2]
    script = re.findall(r"```bash norun\n(.*?)```", section, re.DOTALL)[number]
    variables = clean_environment() | {"PATH": f"{PROGRAMS}:{path_with_flowserver()}", **urls}
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Shop:
    """Functions: `ask` keeps its tokens, and the first call of `charge` for `slow` is answered when a test lets it."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}
        self.charged: list[tuple[str, str]] = []
        self.is_called, self.may_answer = Event(), Event()

    def answer(self, call: Call) -> object:
        execution = call.headers.get("x-flowserver-execution") or call.headers["x-fc-stateful-async-invocation-id"]
        if call.function == "shop/ask":
            self.tokens[execution] = call.event["token"]
            return {}
        self.charged.append((execution, call.headers["idempotency-key"]))
        if execution == "slow" and not self.is_called.is_set():
            self.is_called.set()
            assert self.may_answer.wait(PATIENCE_SECONDS)
        return {}


@pytest.fixture
def restored_url(postgres_url: str) -> Iterator[str]:
    """The URL of the database that the page makes."""
    yield re.sub(r"/test_\w+", "/flows_restored", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as session:
        session.execute("DROP DATABASE IF EXISTS flows_restored WITH (FORCE)")


def insert_keys(url: str, *labels: str) -> list[tuple[AccessKey, str]]:
    made = [make_access_key(label, 0) for label in labels]
    database = Database(url)
    with database.write() as connection:
        for each in made:
            insert_access_key(connection, each.key)
    database.close()
    return [(each.key, each.token) for each in made]


def statuses(client: httpx.Client) -> dict[str, str]:
    found = client.get("/v1/executions?limit=100").raise_for_status().json()["executions"]
    return {f"{each['flowName']}/{each['name']}": each["status"] for each in found}


def ended(client: httpx.Client, path: str) -> str:
    answer = client.get(f"{path}?wait=30").raise_for_status()
    return str(answer.json()["status"])


def test_postgres_is_backed_up_under_load_and_restored_as_the_page_says(run, postgres_url, restored_url, tmp_path):
    run("migrate", "--database-url", postgres_url)
    (_, token), (leaked, leaked_token) = insert_keys(postgres_url, "admin", "leaked")
    authorization = {"Authorization": f"Bearer {token}"}
    shop = Shop()
    with FunctionServer(shop.answer) as functions:
        with (
            ServerProcess(postgres_url) as server,
            httpx.Client(base_url=server.url, trust_env=False, headers=authorization, timeout=60) as client,
        ):
            functions.register(server.url, "shop/ask", "shop/charge", token=token)
            for flow, definition in (("order", CALL), ("asks", ASKS)):
                client.put(f"/v1/flows/{flow}", json={"definition": definition}).raise_for_status()
            start(client, "before")
            for name in ("waits", "goes-on"):
                client.post("/v1/flows/asks/executions", json={"name": name}).raise_for_status()
                events = f"/v1/flows/asks/executions/{name}/events"
                while "TaskSubmitted" not in client.get(events).text:
                    pass
            client.post("/v1/flows/order/executions", json={"name": "slow"}).raise_for_status()
            assert shop.is_called.wait(PATIENCE_SECONDS)
            invoke(client, "receipt-before")

            run_page(0, tmp_path, FLOWSERVER_DATABASE_URL=postgres_url)

            report = {"taskToken": shop.tokens["goes-on"], "output": {}}
            client.post("/v1/tasks/succeed", json=report).raise_for_status()
            assert ended(client, "/v1/flows/asks/executions/goes-on") == "Succeeded"
            start(client, "after")
            invoke(client, "receipt-after")
            disabled = run("keys", "disable", leaked.access_key_id, "--database-url", postgres_url)
            assert disabled.exit_code == 0
            server.kill()
        shop.may_answer.set()

        shown = run_page(1, tmp_path, FLOWSERVER_DATABASE_URL=postgres_url, RESTORED_URL=restored_url)
        assert "1 keys disabled" in shown
        assert "2 executions have called functions since the backup" in shown
        assert "1 asynchronous invocations have called functions since the backup" in shown
        assert [line for line in shown.splitlines() if re.match("  [aos]", line)] == [
            "  asks/goes-on",
            "  order/after",
            "  shop/charge/receipt-after",
        ]

        with (
            ServerProcess(restored_url) as server,
            httpx.Client(base_url=server.url, trust_env=False, headers=authorization, timeout=60) as client,
        ):
            assert client.get("/v1/flows", headers={"Authorization": f"Bearer {leaked_token}"}).status_code == 401
            for name in ("waits", "goes-on"):
                report = {"taskToken": shop.tokens[name], "output": {}}
                client.post("/v1/tasks/succeed", json=report).raise_for_status()
                assert ended(client, f"/v1/flows/asks/executions/{name}") == "Succeeded"
            assert ended(client, "/v1/flows/order/executions/slow") == "Succeeded"
            assert statuses(client) == dict.fromkeys(
                ("order/before", "order/slow", "asks/waits", "asks/goes-on"), "Succeeded"
            )
    for name in ("slow", "goes-on"):
        keys = [key for execution, key in shop.charged if execution == name]
        assert len(keys) == 2, "it is called again"
        assert len(set(keys)) == 1, "under the same key"


def test_fence_refuses_what_is_in_use_and_itself(run, sqlite_url, tmp_path):
    other = f"sqlite:///{tmp_path}/other.db"
    assert run("migrate", "--database-url", other).exit_code == 0
    itself = run("fence", other, other)
    assert (itself.exit_code, one_line(itself)) == (2, "flowserver: a database cannot be compared with itself")
    with ServerProcess(sqlite_url):
        assert "another flowserver uses this database" in one_line(run("fence", sqlite_url, other))
        assert "another flowserver uses this database" in one_line(run("fence", other, sqlite_url))


def test_fence_keeps_a_restored_server_closed_and_used_requests_and_links_used(run, sqlite_url, tmp_path):
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert run("migrate", "--database-url", restored).exit_code == 0
    insert_keys(sqlite_url, "admin")
    before, after = Database(sqlite_url), Database(restored)
    link = dict.fromkeys(("digest", "label", "role", "flows"), "x") | {"is_first": False, "expires_at": 1}
    with before.write() as connection:
        connection.execute(insert(nonces), {"access_key_id": "k", "nonce": "n", "expires_at": 1})
    with after.write() as connection:
        connection.execute(insert(sign_in_links), link)
    for _ in range(2):
        done = run("fence", sqlite_url, restored)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "0 keys disabled, 1 used nonces added" in done.stdout
        with after.read() as connection:
            assert read_admission(connection) is Admission.LOST
            assert connection.execute(select(nonces)).all() == [("k", "n", 1)]
            assert connection.execute(select(sign_in_links)).all() == []
    for database in (before, after):
        database.close()
