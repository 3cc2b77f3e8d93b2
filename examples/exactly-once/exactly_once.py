"""A WSGI middleware that makes a function exactly-once in effect, though flowserver calls it at least once.

The function's effect and its reply are committed in ONE transaction of one SQLite database, under the call's
`Idempotency-Key`. So whenever the process dies, either both are stored or neither, and a later call with the key gets
the stored reply. Copy this file beside your function; it needs only Python's standard library.

    def function(environ, start_response):
        connection = environ["exactly_once.connection"]  # write the effect through it; do not commit
        ...

    application = ExactlyOnce(function, "effects.db")  # for wsgiref, gunicorn, Flask's wsgi_app, ...
"""

import io
import json
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Headers = list[tuple[str, str]]
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

RETENTION_SECONDS = 400 * 24 * 3600
"""How long replies are stored: longer than any execution can last, so longer than a call can be repeated."""

WAIT_SECONDS = 60.0
"""How long a call waits for others before it gets 503."""

DELETED_AT_ONCE = 100

TABLES = """
CREATE TABLE IF NOT EXISTS exactly_once (
    key TEXT PRIMARY KEY,
    attempt INTEGER NOT NULL,  -- the latest that has run
    status TEXT,               -- of the answer; NULL while every attempt has failed
    headers TEXT,
    body BLOB,
    seen_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS exactly_once_by_age ON exactly_once (seen_at);
"""


@dataclass(frozen=True)
class Answer:
    """A whole HTTP response."""

    status: str
    headers: Headers
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether flowserver counts the reply as a success; only then the function must never run again."""
        names = {name.lower(): value.strip() for name, value in self.headers}
        failed = "x-fc-error-type" in names or names.get("x-fc-status") == "404"
        return self.status.startswith("2") and not failed


class ExactlyOnce:
    """Runs `function` until it succeeds once for a key; only then its writes through the connection are committed.

    - After a success, a call with the same key gets the stored reply: status, headers and body.
    - One call runs at a time: BEGIN IMMEDIATE takes SQLite's write lock. A second call with a key waits for the first.
    - A failure is returned and its writes are rolled back. The next attempt with the key runs again.
    - An attempt older than one that has run gets 409: flowserver no longer waits for its reply.

    The connection refuses COMMIT and ROLLBACK; the function may use savepoints. (`OR ROLLBACK` in a statement ends the
    transaction anyway: such a call gets 500.)
    """

    def __init__(
        self,
        function: Application,
        database: str | Path,
        *,
        retention_seconds: float = RETENTION_SECONDS,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._function = function
        self._database = database
        self._retention_seconds = retention_seconds
        self._wait_seconds = wait_seconds
        self._clock = clock
        with closing(self._connect()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(TABLES)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request. If the function raises, its writes are rolled back and the exception is raised."""
        answer = self._answer(environ)
        start_response(answer.status, answer.headers)
        return [answer.body]

    def _answer(self, environ: dict[str, Any]) -> Answer:
        key, attempt = environ.get("HTTP_IDEMPOTENCY_KEY", ""), environ.get("HTTP_X_FLOWSERVER_ATTEMPT", "")
        if not key or not attempt.isdecimal():
            return _refusal("400 Bad Request", "NotACallOfFlowserver", "a header is missing")
        # The whole body now: a slow sender must not keep others waiting for the lock.
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with closing(self._connect()) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                return _refusal("503 Service Unavailable", "Busy", f"other calls took too long: {error}")
            environ = {**environ, "wsgi.input": io.BytesIO(body), "exactly_once.connection": connection}
            return self._run_once(connection, key, int(attempt), environ)

    def _run_once(self, connection: sqlite3.Connection, key: str, attempt: int, environ: dict[str, Any]) -> Answer:
        """Inside the transaction, and to its end."""
        query = "SELECT attempt, status, headers, body FROM exactly_once WHERE key = ?"
        row: tuple[int, Any, Any, Any] = connection.execute(query, (key,)).fetchone() or (0, None, None, None)
        latest, status, headers, body = row
        if status is not None:
            return Answer(status, [(name, value) for name, value in json.loads(headers)], body)
        if attempt < latest:
            return _refusal("409 Conflict", "StaleAttempt", f"attempt {latest} has run, this is attempt {attempt}")
        self._note_attempt(connection, key, attempt)
        connection.execute("SAVEPOINT exactly_once_effect")
        try:
            answer = _run(self._function, environ, connection)
        except Exception:
            _undo(connection)
            raise
        if not answer.is_success:
            _undo(connection)
            return answer
        kept = (answer.status, json.dumps(answer.headers), answer.body, key)
        connection.execute("UPDATE exactly_once SET status = ?, headers = ?, body = ? WHERE key = ?", kept)
        connection.execute("COMMIT")  # the one moment at which the effect and its memory begin to be
        return answer

    def _note_attempt(self, connection: sqlite3.Connection, key: str, attempt: int) -> None:
        now = self._clock()
        old = "SELECT key FROM exactly_once WHERE seen_at < ? LIMIT ?"
        limits = (now - self._retention_seconds, DELETED_AT_ONCE)
        connection.execute(f"DELETE FROM exactly_once WHERE key IN ({old})", limits)
        row = "INSERT INTO exactly_once (key, attempt, seen_at) VALUES (?, ?, ?)"
        newer = "ON CONFLICT (key) DO UPDATE SET attempt = excluded.attempt, seen_at = excluded.seen_at"
        connection.execute(f"{row} {newer}", (key, attempt, now))

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._database, timeout=self._wait_seconds, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")  # what was committed survives a power cut
        return connection


def _run(function: Application, environ: dict[str, Any], connection: sqlite3.Connection) -> Answer:
    """The function's whole answer; the transaction stays open, whatever the function tries."""
    head: list[tuple[str, Headers]] = []
    written: list[bytes] = []

    def start_response(status: str, headers: Headers, exc_info: object = None) -> Callable[[bytes], None]:
        head[:] = [(status, headers)]
        return written.append

    connection.set_authorizer(_refuse_commit)
    try:
        chunks = function(environ, start_response)
        try:
            body = b"".join(chunks)
        finally:
            if close := getattr(chunks, "close", None):
                close()
    finally:
        connection.set_authorizer(None)
    ((status, headers),) = head
    return Answer(status, headers, b"".join(written) + body)


def _refuse_commit(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_TRANSACTION else sqlite3.SQLITE_OK


def _undo(connection: sqlite3.Connection) -> None:
    """Take the function's effects back; that this attempt has run stays known."""
    connection.execute("ROLLBACK TO exactly_once_effect")
    connection.execute("COMMIT")


def _refusal(status: str, error: str, message: str) -> Answer:
    body = json.dumps({"errorType": error, "errorMessage": message}).encode()
    return Answer(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))], body)
