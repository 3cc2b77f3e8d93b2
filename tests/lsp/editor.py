"""An editor that speaks the protocol byte by byte, with a language server as its child process."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.server import PATIENCE_SECONDS, clean_environment

COMMAND = (sys.executable, "-m", "flowserver", "lsp")
CAPABILITIES: dict[str, Any] = {
    "workspace": {"configuration": True},
    "textDocument": {
        "completion": {"completionItem": {"snippetSupport": True, "documentationFormat": ["markdown"]}},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": True},
        "publishDiagnostics": {"relatedInformation": True},
    },
}


class Editor:
    """Start the server as a context; inside, requests and notifications go back and forth."""

    def __init__(
        self, folder: Path, *options: str, encodings: list[str] | None = None, command: Sequence[str] = COMMAND
    ) -> None:
        self.folder = folder
        self._command = [*command, *options]
        self._encodings = encodings
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.kept: list[dict[str, Any]] = []
        self._last_id = 0
        self._versions: dict[str, int] = {}
        self.settings: dict[str, Any] = {}
        self.knows_versions = True
        """Whether the server says of which version of a file its findings are."""

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            self._command,
            cwd=self.folder,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def initialize(self) -> dict[str, Any]:
        """Shake hands; returns what the server offers."""
        capabilities = CAPABILITIES | (
            {"general": {"positionEncodings": self._encodings}} if self._encodings is not None else {}
        )
        root = self.folder.as_uri()
        offered = self.request("initialize", {"processId": None, "rootUri": root, "capabilities": capabilities})
        self.notify("initialized", {})
        return offered

    def end(self) -> int:
        """Shut the server down as the protocol says; returns its exit code."""
        assert self.request("shutdown", None) is None
        self.notify("exit", None)
        return self.process.wait(PATIENCE_SECONDS)

    # Messages

    def request(self, method: str, params: Any) -> Any:
        """The result of a request."""
        reply = self.reply(method, params)
        assert "error" not in reply, reply
        return reply["result"]

    def reply(self, method: str, params: Any) -> dict[str, Any]:
        """The whole reply of a request."""
        self._last_id += 1
        self.send({"id": self._last_id, "method": method, "params": params})
        return self.wait_for(lambda message: message.get("id") == self._last_id and "method" not in message)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.send({"method": method, "params": params})

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send_bytes(self, body: bytes) -> None:
        """Send any bytes as a body."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def wait_for(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted; others are kept."""
        for message in self.kept:
            if is_wanted(message):
                self.kept.remove(message)
                return message
        while (message := self._messages.get(timeout=PATIENCE_SECONDS)) is not None:
            if is_wanted(message):
                return message
            if "id" in message and "method" in message:
                self.send({"id": message["id"], "result": self._answer(message)})
            else:
                self.kept.append(message)
        raise AssertionError(f"the server has ended: {self.stderr()}")

    def _answer(self, message: dict[str, Any]) -> Any:
        """What the editor says to a question of the server: the settings that it has."""
        items = message["params"]["items"] if message["method"] == "workspace/configuration" else None
        return None if items is None else [self.settings.get(item["section"]) for item in items]

    def stderr(self) -> str:
        """What an ended server wrote to stderr."""
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        while head := stdout.readline():
            name, _, length = head.partition(b":")
            assert name == b"Content-Length", head
            while stdout.readline().strip():
                pass
            self._messages.put(json.loads(stdout.read(int(length))))
        self._messages.put(None)

    # Files

    def uri(self, name: str) -> str:
        """The URI of a file of the folder."""
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> list[dict[str, Any]]:
        """Open a file; returns its findings."""
        self._versions[name] = 1
        document = {"uri": self.uri(name), "languageId": "yaml", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return self.findings(name)

    def change(self, name: str, text: str) -> None:
        """Replace the text of an open file."""
        self._versions[name] += 1
        document = {"uri": self.uri(name), "version": self._versions[name]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def close(self, name: str) -> dict[str, Any]:
        """Close a file; returns what is published then."""
        del self._versions[name]
        self.notify("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})
        params: dict[str, Any] = self.wait_for(
            lambda message: self._is_about(message, name) and "version" not in message["params"]
        )["params"]
        return params

    def close_all(self) -> None:
        """Close every file."""
        for name in [*self._versions]:
            self.close(name)
        self.kept.clear()

    def _is_about(self, message: dict[str, Any], name: str) -> bool:
        is_published = message.get("method") == "textDocument/publishDiagnostics"
        return is_published and message["params"]["uri"] == self.uri(name)

    def findings(self, name: str) -> list[dict[str, Any]]:
        """The findings of the present version of a file."""
        version = self._versions[name] if self.knows_versions else None
        found: list[dict[str, Any]] = self.wait_for(
            lambda message: self._is_about(message, name) and message["params"].get("version") == version
        )["params"]["diagnostics"]
        return found

    def at(self, name: str, line: int, character: int) -> dict[str, Any]:
        """The parameters of a request about a place."""
        return {"textDocument": {"uri": self.uri(name)}, "position": {"line": line, "character": character}}
