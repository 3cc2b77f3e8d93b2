"""The exactly-once example with real processes: by its README, and with `kill -9` of either side at
the worst moments.
"""

import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import httpx
import pytest

from tests.examples.conftest import EXAMPLES
from tests.support.server import PATIENCE_SECONDS, ServerProcess, clean_environment

FOLDER = EXAMPLES / "exactly-once"
TRANSFERS = 12
KILLS = {"made": 4, "kept": 3}
"""The number of kills of the bank after an effect, and of the server after its commit."""

EVERY = 4
"""One of this many calls that reach the moment of a kill is killed."""

START = {"alice": 1000, "bob": 0}


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@contextmanager
def python(program: Path, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A Python program, killed when the block ends."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, str(program), *map(str, arguments)]
    with subprocess.Popen(command, env=clean_environment(), **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_readme(open_server: dict[str, str], tmp_path: Path) -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", (FOLDER / "README.md").read_text("utf-8"), re.M | re.S)
    serving, *commands = block.splitlines()
    assert serving.startswith(".venv/bin/python examples/exactly-once/bank.py ")
    with python(FOLDER / "bank.py", tmp_path / "bank.db", 0) as bank:
        assert bank.stdout is not None
        url = bank.stdout.readline().split()[-1]
        answers = []
        for command in commands:
            typed = command.replace("http://127.0.0.1:8080", open_server["FLOWSERVER_URL"])
            line = ["sh", "-c", typed.replace("http://127.0.0.1:9000", url)]
            ran = subprocess.run(
                line, cwd=EXAMPLES.parent, env=clean_environment(), capture_output=True, timeout=60, check=True
            )
            answers.append(json.loads(ran.stdout))
    came_of_it = [(row["status"], row["output"], row["error"]) for row in answers[-2:]]
    assert came_of_it == [("Succeeded", {"from": 900, "to": 100}, None), ("Failed", None, "NotEnough")]
    assert rows(tmp_path / "bank.db", "SELECT name, balance FROM accounts") == [("alice", 900), ("bob", 100)]
    assert rows(tmp_path / "bank.db", "SELECT account, amount FROM movements") == [("alice", -100), ("bob", 100)]


class Fate:
    """Lets every call of the bank continue, but now and then kills one of the two sides instead, and restarts it.

    The bank dies with an effect that is not committed; the server dies when the bank has committed, before it could
    store the answer.
    """

    def __init__(self, folder: Path) -> None:
        self.bank_file = folder / "bank.db"
        self.seen: list[tuple[str, str]] = []
        self.kills = {"made": 0, "kept": 0}
        self._database_url = f"sqlite:///{folder}/flows.db"
        self._server = ServerProcess(self._database_url)
        self.url = self._server.url
        self._server_is_up = True
        self._news = Condition()
        self._bank_port = "0"
        self._start_bank()
        self.bank_url = f"http://127.0.0.1:{self._bank_port}"
        self._thread = Thread(target=self._rule, daemon=True)

    def __enter__(self) -> "Fate":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bank.kill()
        self._thread.join(PATIENCE_SECONDS)
        self._bank.communicate()
        self._server.kill()

    def wait_for_server(self) -> None:
        """Return when the server runs; it may be killed again at once."""
        with self._news:
            assert self._news.wait_for(lambda: self._server_is_up, PATIENCE_SECONDS)

    def _rule(self) -> None:
        assert self._bank.stdout is not None
        while line := self._bank.stdout.readline():  # of the bank that runs now
            moment, key = line.split()
            self.seen.append((moment, key))
            if not self._kills(moment):
                self._let_go()
            elif moment == "made":
                self._end_bank()
                self._start_bank()
            else:
                self._restart_server()
                self._let_go()

    def _kills(self, moment: str) -> bool:
        """Whether the call that has just reached this moment is to be killed."""
        happened = sum(seen == moment for seen, _ in self.seen)
        if happened % EVERY or self.kills[moment] == KILLS[moment]:
            return False
        self.kills[moment] += 1
        return True

    def _let_go(self) -> None:
        assert self._bank.stdin is not None
        self._bank.stdin.write("\n")
        self._bank.stdin.flush()

    def _start_bank(self) -> None:
        program = [sys.executable, str(Path(__file__).with_name("watched_bank.py"))]
        self._bank = subprocess.Popen(
            [*program, str(self.bank_file), self._bank_port],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # of broken pipes to servers that were killed
            text=True,
        )
        assert self._bank.stdout is not None
        self._bank_port = self._bank.stdout.readline().split()[1]

    def _end_bank(self) -> None:
        self._bank.kill()
        self._bank.communicate()

    def _restart_server(self) -> None:
        self._set_up(False)
        self._server.kill()
        self._server = ServerProcess(self._database_url, port=self._server.port)
        self._set_up(True)

    def _set_up(self, is_up: bool) -> None:
        with self._news:
            self._server_is_up = is_up
            self._news.notify_all()


def request(fate: Fate, method: str, path: str, **content: Any) -> Any:
    """Repeat a request until a server answers; every request here may be repeated."""
    for _ in range(2 * KILLS["kept"] + 1):
        fate.wait_for_server()
        try:
            with httpx.Client(base_url=fate.url, timeout=PATIENCE_SECONDS, trust_env=False) as http:
                reply = http.request(method, path, **content)
        except httpx.TransportError:
            continue  # killed meanwhile
        return reply.raise_for_status().json()
    raise AssertionError("the server was killed more often than it was to be")


def await_end(fate: Fate, name: str) -> dict[str, Any]:
    for _ in range(PATIENCE_SECONDS):
        row: dict[str, Any] = request(fate, "GET", f"/v1/flows/transfer/executions/{name}", params={"wait": 2})
        if row["status"] != "Running":
            return row
    raise AssertionError(f"{name} is stuck")


@pytest.mark.slow
def test_every_transfer_is_made_once_despite_kills(tmp_path: Path) -> None:
    amounts = range(1, TRANSFERS + 1)  # the amounts differ, so the sum shows which were made how often
    with Fate(tmp_path) as fate:
        for name in ("withdraw", "deposit"):
            request(fate, "PUT", f"/v1/functions/bank/{name}", json={"url": f"{fate.bank_url}/{name}"})
        definition = {"content": (FOLDER / "flow.yaml").read_bytes(), "headers": {"Content-Type": "application/yaml"}}
        request(fate, "PUT", "/v1/flows/transfer", **definition)
        for amount in amounts:
            order = {"name": f"t{amount}", "input": {"from": "alice", "to": "bob", "amount": amount}}
            request(fate, "POST", "/v1/flows/transfer/executions", json=order)
        ended = [await_end(fate, f"t{amount}") for amount in amounts]
    assert [row["status"] for row in ended] == ["Succeeded"] * TRANSFERS
    moved = sum(amounts)
    balances = dict(rows(fate.bank_file, "SELECT name, balance FROM accounts"))
    assert balances == {"alice": START["alice"] - moved, "bob": START["bob"] + moved}
    keys = [key for (key,) in rows(fate.bank_file, "SELECT key FROM movements")]
    assert len(keys) == len(set(keys)) == 2 * TRANSFERS
    assert fate.kills == KILLS
    seen = Counter(fate.seen)
    assert sum(seen["made", key] for key in keys) == 2 * TRANSFERS + KILLS["made"], "lost transfers are made again"
    assert any(seen["kept", key] > 1 for key in keys), "no stored answer was used"
