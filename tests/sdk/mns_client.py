"""@alicloud/mns in its own process, which makes one call for each line that it reads."""

import json
import subprocess
from typing import Any

from tests.sdk.client import DRIVERS, Access
from tests.support.node import NODE
from tests.support.server import clean_environment


class MnsError(Exception):
    """The SDK's exception: the error's name holds its code."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class NodeMns:
    """A running driver, and its server."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._process = subprocess.Popen(
            (NODE, str(DRIVERS / "mns.js")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=clean_environment(),
            encoding="utf-8",
        )

    def call(self, method: str, *arguments: Any) -> Any:
        """The body that the SDK returns, None for none; raises MnsError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"method": method, "arguments": arguments, **vars(self._access)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": {"name": "crash", "message": ""}}')
        if "error" in answer:
            raise MnsError(**answer["error"])
        return answer["result"]["body"]

    def close(self) -> None:
        """End the process; it must have reported no error."""
        self._process.communicate()
        assert self._process.returncode == 0
