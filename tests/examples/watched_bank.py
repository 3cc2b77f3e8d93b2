"""The example's bank as a process that pauses at two moments of every call: `watched_bank.py DATABASE PORT`.

It prints `made KEY` when the function has made its effect, which is not committed, and `kept KEY` when effect and
answer are committed, and the answer is not sent. After each it continues when it reads a line. It has one thread.
"""

import runpy
import sys
from pathlib import Path
from wsgiref.simple_server import make_server

FOLDER = Path(__file__).parents[2] / "examples" / "exactly-once"


def stop_after(application, moment):
    def stopping(environ, start_response):
        chunks = application(environ, start_response)
        print(moment, environ["HTTP_IDEMPOTENCY_KEY"], flush=True)
        sys.stdin.readline()
        return chunks

    return stopping


def main(database, port):
    sys.path.insert(0, str(FOLDER))
    bank = runpy.run_path(str(FOLDER / "bank.py"), run_name="bank")
    application = bank["open_bank"](database)
    application._function = stop_after(application._function, "made")
    with make_server("127.0.0.1", int(port), stop_after(application, "kept"), handler_class=bank["QuietHandler"]) as it:
        print("ready", it.server_port, flush=True)
        it.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
