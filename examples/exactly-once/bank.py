"""Two functions over one database of accounts: bank/withdraw and bank/deposit, each exactly-once in effect.

python bank.py [DATABASE [PORT]] serves them on 127.0.0.1 (bank.db and 9000 if not given).
"""

import json
import socketserver
import sqlite3
import sys
from contextlib import closing
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from exactly_once import ExactlyOnce

TABLES = """
CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
CREATE TABLE IF NOT EXISTS movements (key TEXT NOT NULL, account TEXT NOT NULL, amount INTEGER NOT NULL);
INSERT OR IGNORE INTO accounts VALUES ('alice', 1000), ('bob', 0);
"""


def bank(environ, start_response):
    """An ordinary WSGI application except for the connection. It does not handle repeated calls itself."""
    connection = environ["exactly_once.connection"]
    order = json.load(environ["wsgi.input"])
    amount = order["amount"] if environ["PATH_INFO"] == "/deposit" else -order["amount"]
    key = environ["HTTP_IDEMPOTENCY_KEY"]
    connection.execute("INSERT INTO movements VALUES (?, ?, ?)", (key, order["account"], amount))
    try:
        connection.execute("UPDATE accounts SET balance = balance + ? WHERE name = ?", (amount, order["account"]))
    except sqlite3.IntegrityError:
        return answer(start_response, "400 Bad Request", {"errorType": "NotEnough", "errorMessage": order["account"]})
    (balance,) = connection.execute("SELECT balance FROM accounts WHERE name = ?", (order["account"],)).fetchone()
    return answer(start_response, "200 OK", {"balance": balance})


def answer(start_response, status, document):
    body = json.dumps(document).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def open_bank(database):
    """The application to serve; creates the accounts if there are none."""
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(TABLES)
    return ExactlyOnce(bank, database)


class ThreadingServer(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def main(database="bank.db", port="9000"):
    with make_server("127.0.0.1", int(port), open_bank(database), ThreadingServer, QuietHandler) as server:
        print(f"ready on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
