"""Makes `743398d5.sql.gz` beside this file: ended executions whose choices have not recorded their options.

Run it with the code of that commit, in a checkout of it:

    PYTHONPATH=. .venv/bin/python PATH/tests/console/before/make.py PATH/tests/console/before
"""

import gzip
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import httpx

from tests.support.function_server import Call, FunctionError, FunctionServer
from tests.support.server import ServerProcess

HEADER = "version: v1\ntype: flow\nsteps:\n"
TASK = "type: task, resourceArn: 'acs:fc:::services/shop/functions"
FLOWS = {
    "poll": f"""{HEADER}\
  - {{type: pass, name: init, outputMappings: [{{target: left, source: $input.left}}]}}
  - type: pass
    name: count
    outputMappings: [{{target: left, source: "$input.left[1]"}}, {{target: last, source: "$input.left[0]"}}]
  - type: choice
    name: check
    inputMappings: [{{target: last, source: $local.last}}]
    choices:
      - {{condition: $.last == "never", goto: done}}
      - {{condition: $.last == "again", goto: count}}
      - condition: $.last == "more"
        steps: [{{type: pass, name: more}}]
        goto: done
    default: {{goto: done}}
  - {{type: succeed, name: done}}
""",
    "caught": f"""{HEADER}\
  - {{{TASK}/charge', name: charge, catch: [{{errors: [Declined], goto: refund}}, {{errors: [FnF.ALL], goto: refund}}]}}
  - {{type: pass, name: never}}
  - type: foreach
    name: refund
    iterationMapping: {{collection: $.items, item: item}}
    steps:
      - type: choice
        name: which
        choices: [{{condition: $.item == 1, steps: [{{type: pass, name: one}}]}}]
        default: {{steps: [{{type: pass, name: other}}]}}
""",
    "redriven": f"""{HEADER}\
  - {{type: pass, name: first}}
  - {{{TASK}/once', name: once}}
""",
}
INPUTS = {
    "poll": {"left": ["again", ["again", ["more", 0]]]},
    "caught": {"items": [0, 1, 2]},
    "redriven": {},
}


def main() -> None:
    """Run each flow once, and dump the database."""
    folder = Path(sys.argv[1])
    failures = [FunctionError("Down")]

    def answer(call: Call) -> object:
        if call.function == "shop/charge":
            return FunctionError("Declined")
        return failures.pop() if failures else {}

    with tempfile.TemporaryDirectory() as scratch, FunctionServer(answer) as functions:
        file = Path(scratch) / "flows.db"
        with ServerProcess(f"sqlite:///{file}") as server, httpx.Client(base_url=server.url, timeout=60) as client:
            functions.register(server.url, "shop/charge", "shop/once")
            for name, definition in FLOWS.items():
                client.put(f"/v1/flows/{name}", json={"definition": definition}).raise_for_status()
                body = {"name": "run", "input": INPUTS[name]}
                client.post(f"/v1/flows/{name}/executions?wait=60", json=body).raise_for_status()
            client.post("/v1/flows/redriven/executions/run/redrive", json={}).raise_for_status()
            ended = client.get("/v1/flows/redriven/executions/run?wait=60").json()
            assert ended["status"] == "Succeeded", ended
        with closing(sqlite3.connect(file)) as database:
            dump = "\n".join(database.iterdump())
    (folder / "743398d5.sql.gz").write_bytes(gzip.compress(dump.encode(), mtime=0))


if __name__ == "__main__":
    main()
