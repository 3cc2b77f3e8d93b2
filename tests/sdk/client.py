"""The real SDKs, each in its own process, behind one interface.

A process reads one call per line, makes it with the SDK's own classes and methods, and writes what the SDK returned or
raised. So SDK releases that exclude each other run side by side, and their warnings do not mix. Names of actions and
parameters are those of the API's documentation, which every SDK spells in its own way.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.node import NODE
from tests.support.server import clean_environment

FOLDER = Path(__file__).parent
DRIVERS = FOLDER / "drivers"

SDK_V3_FOLDER = os.environ.get("FLOWSERVER_TEST_SDK_V3") or str(FOLDER.parents[1] / ".venv" / "sdk-v3")
"""The folder in which `make test` installs the older release, or another one for runs without make."""


@dataclass(frozen=True)
class Sdk:
    """An SDK: the command of its driver, and its exception for a 4xx, `{code}` being the error's code."""

    name: str
    command: tuple[str, ...]
    raises: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _python(script: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, str(DRIVERS / script), *arguments)


CLASSIC = Sdk("classic", _python("classic.py"), "ServerException")
SDKS = [
    CLASSIC,
    Sdk("tea2", _python("tea.py"), "ClientException"),
    Sdk("tea2-async", _python("tea.py", "async"), "ClientException"),
    Sdk("tea-v3", _python("tea.py"), "TeaException", {"PYTHONPATH": SDK_V3_FOLDER}),
    Sdk("node", (NODE, str(DRIVERS / "node.js")), "{code}Error"),
    Sdk("node-v3", (NODE, str(DRIVERS / "node_v3.js")), "Error"),
]

FC_OPEN = Sdk("fc-open", _python("fc_open.py"), "ClientException")
FC_OPEN_NODE = Sdk("fc-open-node", (NODE, str(DRIVERS / "fc_open.js")), "Error")
OPEN_SDKS = [FC_OPEN, FC_OPEN_NODE]
"""Those of 2021-04-06: the only SDKs that can read tasks and stop them."""

FC_SDKS = [
    Sdk("fc2-python", _python("fc2_python.py"), "FcError"),
    FC_OPEN,
    Sdk("fc2-node", (NODE, str(DRIVERS / "fc2.js")), "FC{code}Error"),
    FC_OPEN_NODE,
]
"""The SDKs of Function Compute."""


@dataclass(frozen=True)
class Access:
    """The server and the credentials of a client; `address` is host:port."""

    address: str | None
    access_key_id: str
    secret: str
    seconds_ago: int = 0
    """The error of the client's clock."""


class SdkError(Exception):
    """An SDK's exception: the name of its class, and its data on the server's answer."""

    def __init__(self, raised: str, code: str, status: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.raised = raised
        self.code = code
        self.status = status
        self.message = message


class SdkProcess:
    """A running driver."""

    def __init__(self, sdk: Sdk, environment: Mapping[str, str] | None = None) -> None:
        older_release = sdk.environment.get("PYTHONPATH")
        assert older_release is None or Path(older_release).is_dir(), f"{older_release} is missing; run `make test`"
        self.sdk = sdk
        self._process = subprocess.Popen(
            sdk.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=clean_environment() | dict(sdk.environment) | dict(environment or {}),
            encoding="utf-8",
        )

    def call(self, access: Access, action: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The SDK's result, as the wire names it and without unset fields; raises SdkError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"action": action, "parameters": dict(parameters), **vars(access)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"crash": true}')
        assert "crash" not in answer, f"the driver of {self.sdk} died of {action}; see its traceback"
        if "error" in answer:
            raise SdkError(**answer["error"])
        return {name: value for name, value in answer["result"].items() if value is not None}

    def close(self) -> None:
        """End the process; it must have reported no error."""
        self._process.communicate()
        assert self._process.returncode == 0


@dataclass(frozen=True)
class SdkClient:
    """An SDK that uses this server."""

    process: SdkProcess
    access: Access

    def call(self, action: str, **parameters: Any) -> dict[str, Any]:
        """Call an action; raises SdkError."""
        return self.process.call(self.access, action, parameters)
