"""Generates a client with openapi-python-client and makes calls with it; see tests/openapi/test_generated_clients.py.

Arguments: the document, an empty folder, the server's URL. Calls come as lines on stdin, replies go to stdout.
"""

import importlib
import inspect
import json
import pkgutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, get_args

from openapi_python_client.cli import app


def generate(document: str, folder: str) -> None:
    """Write the package `generated` into the folder."""
    arguments = ["generate", "--path", document, "--meta", "none", "--output-path", f"{folder}/generated"]
    (Path(folder) / "config.yaml").write_text("post_hooks: []\n")
    with redirect_stdout(sys.stderr):
        app([*arguments, "--config", f"{folder}/config.yaml"], standalone_mode=False)


def functions_of(package: Any) -> dict[str, Any]:
    """The function of each operation, by its id."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = [importlib.import_module(each.name) for each in found if not each.ispkg]
    return {module.__name__.rpartition(".")[2]: module.sync_detailed for module in modules}


def body_of(function: Any, body: Any) -> dict[str, Any]:
    """The body as the function takes it; nothing if it takes none."""
    parameter = inspect.signature(function).parameters.get("body")
    if parameter is None:
        return {}
    kinds = get_args(parameter.annotation) or (parameter.annotation,)
    kind = next(kind for kind in kinds if hasattr(kind, "from_dict"))
    return {"body": kind.from_dict(body)}


generate(sys.argv[1], sys.argv[2])
sys.path.insert(0, sys.argv[2])
client = importlib.import_module("generated").AuthenticatedClient(
    sys.argv[3], token="any", raise_on_unexpected_status=True, httpx_args={"trust_env": False}
)
functions = functions_of(importlib.import_module("generated.api"))
for line in sys.stdin:
    call = json.loads(line)
    function = functions[call["id"]]
    reply = function(**call["path"], **call["query"], **body_of(function, call["body"]), client=client)
    is_read = reply.parsed is not None
    print(json.dumps({"id": call["id"], "status": int(reply.status_code), "isRead": is_read}), flush=True)
