"""The receiver middleware alone: repeated, parallel, late and interrupted calls of one key."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from io import BytesIO
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest

from tests.examples.conftest import EXAMPLES

FOLDER = EXAMPLES / "exactly-once"
PATIENCE_SECONDS = 60
SECOND_CALLS = 6

Function = Callable[[dict[str, Any], Callable[..., Any]], list[bytes]]

MAKE_EFFECT = "INSERT INTO effects VALUES (?)"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "effects.db")) as connection:
        connection.execute("CREATE TABLE effects (body TEXT)")
    return tmp_path / "effects.db"


@pytest.fixture
def exactly_once(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The middleware, imported as a function beside it would."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return __import__("exactly_once").ExactlyOnce


def effects(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [body for (body,) in connection.execute("SELECT body FROM effects")]


def call(application: Any, attempt: int = 1, *, key: str = "k", body: str = "1") -> tuple[str, list[Any], bytes]:
    """Call a WSGI application as flowserver would; returns status, headers and body."""
    heads: list[tuple[str, list[Any]]] = []
    environ = {
        "HTTP_IDEMPOTENCY_KEY": key,
        "HTTP_X_FLOWSERVER_ATTEMPT": str(attempt),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body.encode()),
    }
    chunks = application(environ, lambda status, headers: heads.append((status, headers)))
    ((status, headers),) = heads
    return status, headers, b"".join(chunks)


class Worker:
    """A function that makes one effect for each of its calls; `outcomes` are the ends of its calls."""

    def __init__(self, *outcomes: str | Exception, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.calls = 0
        self._outcomes = list(outcomes) or ["200 OK"]
        self._headers = [("X-Of", "the function"), *headers]

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        body = environ["wsgi.input"].read().decode()
        environ["exactly_once.connection"].execute(MAKE_EFFECT, (body,))
        self.calls += 1
        outcome = self._outcomes[min(self.calls, len(self._outcomes)) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        start_response(outcome, self._headers)
        return [b"call ", str(self.calls).encode()]


def test_a_call_that_is_repeated_gets_the_first_answer(exactly_once: Any, database: Path) -> None:
    worker = Worker("201 Created")
    for process in range(2):  # the second has only the file
        application = exactly_once(worker, database)
        for attempt in (1, 2):
            assert call(application, 1 + process + attempt) == (
                "201 Created",
                [("X-Of", "the function")],
                b"call 1",
            )
    assert effects(database) == ["1"]
    assert call(application, key="another", body="2")[2] == b"call 2"
    assert effects(database) == ["1", "2"]


def test_calls_at_the_same_time_run_once(exactly_once: Any, database: Path) -> None:
    others_come = Barrier(SECOND_CALLS + 1)
    worker = Worker()

    def function(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        others_come.wait(PATIENCE_SECONDS)
        return worker(environ, start_response)

    application = exactly_once(function, database)

    def second_call(attempt: int) -> bytes:
        others_come.wait(PATIENCE_SECONDS)
        return call(application, attempt)[2]

    begun = Event()

    def first_call() -> bytes:
        begun.set()
        return call(application, 1)[2]

    with ThreadPoolExecutor(SECOND_CALLS + 1) as threads:
        first = threads.submit(first_call)
        assert begun.wait(PATIENCE_SECONDS)
        seconds = [threads.submit(second_call, 2) for _ in range(SECOND_CALLS)]
        answers = {each.result(PATIENCE_SECONDS) for each in [first, *seconds]}
    assert answers == {b"call 1"}
    assert effects(database) == ["1"]


@pytest.mark.parametrize(
    ("outcome", "headers"),
    [
        ("500 Internal Server Error", ()),
        ("400 Bad Request", ()),
        ("200 OK", (("X-Fc-Error-Type", "UnhandledInvocationError"),)),
        ("200 OK", (("x-fc-status", "404"),)),
    ],
)
def test_a_failure_is_undone_and_not_recorded(
    exactly_once: Any, database: Path, outcome: str, headers: tuple[tuple[str, str], ...]
) -> None:
    status, _, body = call(exactly_once(Worker(outcome, headers=headers), database), 1)
    assert (status, body) == (outcome, b"call 1")
    assert effects(database) == []
    worker = Worker()
    assert call(exactly_once(worker, database), 2)[0] == "200 OK"
    assert (worker.calls, effects(database)) == (1, ["1"])


def test_an_exception_is_undone_and_passed_on(exactly_once: Any, database: Path) -> None:
    application = exactly_once(Worker(ZeroDivisionError(), "200 OK"), database)
    with pytest.raises(ZeroDivisionError):
        call(application, 1)
    assert effects(database) == []
    assert call(application, 1)[2] == b"call 2"  # the same attempt, sent again on a new connection
    assert effects(database) == ["1"]


def test_a_late_attempt_is_not_run(exactly_once: Any, database: Path) -> None:
    worker = Worker("500 Internal Server Error", "200 OK")
    application = exactly_once(worker, database)
    assert call(application, 3)[0] == "500 Internal Server Error"
    status, _, body = call(application, 2)
    assert (status, json.loads(body)["errorType"]) == ("409 Conflict", "StaleAttempt")
    assert worker.calls == 1
    assert call(application, 4)[0] == "200 OK"
    assert call(application, 2)[0] == "200 OK"
    assert (worker.calls, effects(database)) == (2, ["1"])


def test_a_late_attempt_waits_for_the_attempt_under_way(exactly_once: Any, database: Path) -> None:
    begun, go_on = Event(), Event()

    def function(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        start_response("500 Internal Server Error", [])
        return []

    application = exactly_once(function, database)
    with ThreadPoolExecutor(2) as threads:
        current = threads.submit(call, application, 2)
        assert begun.wait(PATIENCE_SECONDS)
        begun.clear()
        late = threads.submit(call, application, 1)
        go_on.set()
        assert current.result(PATIENCE_SECONDS)[0] == "500 Internal Server Error"
        assert late.result(PATIENCE_SECONDS)[0] == "409 Conflict"
    assert not begun.is_set()


DYING = f"""
import os, signal, sys
sys.path[:0] = {[str(FOLDER), str(EXAMPLES.parent)]!r}
from exactly_once import ExactlyOnce
from tests.examples.test_exactly_once import Worker, call

def function(environ, start_response):
    chunks = Worker()(environ, start_response)
    if sys.argv[2] == "in mid-call":
        os.kill(os.getpid(), signal.SIGKILL)
    return chunks

call(ExactlyOnce(function, sys.argv[1]), 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("moment", "runs_again"), [("in mid-call", True), ("before the answer is sent", False)])
def test_a_process_that_is_killed(exactly_once: Any, database: Path, moment: str, runs_again: bool) -> None:
    killed = subprocess.run([sys.executable, "-c", DYING, str(database), moment], timeout=PATIENCE_SECONDS)
    assert killed.returncode == -signal.SIGKILL
    assert len(effects(database)) == (0 if runs_again else 1)
    worker = Worker()
    assert call(exactly_once(worker, database), 2)[2] == b"call 1"
    assert worker.calls == int(runs_again)
    assert effects(database) == ["1"]


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_function_cannot_end_the_transaction(exactly_once: Any, database: Path, ending: str) -> None:
    worker = Worker()

    def function(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        answer = worker(environ, start_response)
        getattr(environ["exactly_once.connection"], ending)()
        return answer

    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        call(exactly_once(function, database))
    assert effects(database) == []


def test_a_call_does_not_wait_forever(exactly_once: Any, database: Path) -> None:
    application = exactly_once(Worker(), database, wait_seconds=0)
    with closing(sqlite3.connect(database, isolation_level=None)) as somebody:
        somebody.execute("BEGIN IMMEDIATE")
        status, _, body = call(application)
    assert (status, json.loads(body)["errorType"]) == ("503 Service Unavailable", "Busy")
    assert call(application)[0] == "200 OK"


def test_answers_are_kept_for_the_retention_time(exactly_once: Any, database: Path) -> None:
    instants = iter([0.0, 10.0, 10.1])  # one for each call that runs
    application = exactly_once(Worker(), database, retention_seconds=10, clock=lambda: next(instants))
    assert call(application, key="k")[2] == b"call 1"
    assert call(application, key="second")[2] == b"call 2"
    assert call(application, key="k")[2] == b"call 1"
    assert call(application, key="last")[2] == b"call 3"
    with closing(sqlite3.connect(database)) as connection:
        keys = connection.execute("SELECT key FROM exactly_once ORDER BY seen_at").fetchall()
    assert keys == [("second",), ("last",)]


@pytest.mark.parametrize(("key", "attempt"), [("", "1"), ("k", ""), ("k", "-1")])
def test_other_requests_are_refused(exactly_once: Any, database: Path, key: str, attempt: Any) -> None:
    worker = Worker()
    assert call(exactly_once(worker, database), attempt, key=key)[0] == "400 Bad Request"
    assert worker.calls == 0


def test_it_needs_the_standard_library_only() -> None:
    """In isolated mode without site packages."""
    code = f"import sys; sys.path.append({str(FOLDER)!r}); import exactly_once"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], timeout=PATIENCE_SECONDS, check=True, env=os.environ)
