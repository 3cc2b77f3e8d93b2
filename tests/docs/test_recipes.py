"""The commands on the pages are run against a real server; only ports and paths differ.

Blocks run in order, in one folder: `bash` and `python` as programs, `js` by Node, `console` with the
output after each `$ command`. A `text output` is the output of the block before it. Marks on a fence: `file=NAME`
writes the block to a file instead; `host=WORDS` leaves it running from the moment it prints the words; `v3` runs it
again with the release of the SDK that signs with V3; `norun` is for readers only.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, pages, title_of
from tests.sdk.client import SDK_V3_FOLDER
from tests.support.node import NODE
from tests.support.ports import free_port
from tests.support.server import ServerProcess, clean_environment, path_with_flowserver

SECONDS = 60
"""The time limit of a block; only a block that hangs reaches it."""

RUNNABLE = ("bash", "python", "js", "console")
NODE_MODULES = ROOT / "tests" / "sdk" / "node" / "node_modules"

CURL_SETTINGS = "fail-with-body\nsilent\nshow-error\n"
"""Makes a refused request end its block."""

FIXED_PORTS = ("9000", "9100")
"""Ports that the pages let functions listen on."""

PAGES = [page for page in pages() if any(block.language in RUNNABLE for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=title_of)
def test_the_commands_of_the_page_work(page: Path, tmp_path: Path, migrated_sqlite: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    # Migrating takes longer than the rest of a start.
    shutil.copy(migrated_sqlite, tmp_path / "data" / "flowserver.db")
    with ServerProcess("sqlite:///data/flowserver.db", folder=tmp_path) as server, ExitStack() as hosted:
        reader = Reader(server, tmp_path)
        printed = ""
        for block in blocks(page):
            if name := block.mark("file"):
                (tmp_path / name).parent.mkdir(exist_ok=True)
                (tmp_path / name).write_text(reader.adapted(block.text))
            elif words := block.mark("host"):
                hosted.enter_context(reader.hosting(block, words))
            elif block.language in RUNNABLE and "norun" not in block.marks:
                printed = reader.run(block)
            elif block.language == "text" and "output" in block.marks:
                assert printed == block.text, block


def test_only_some_blocks_are_not_run() -> None:
    """These need another machine (a PostgreSQL, a service manager), much time, or a server with other settings.

    `how-to/operate.md` has a test of its own.
    """
    kept = {title_of(page) for page in pages() for block in blocks(page) if "norun" in block.marks}
    assert {page for page in kept if not page.startswith("maintainers/")} <= {
        "how-to/backup.md",
        "how-to/cells.md",
        "how-to/edit-flows.md",
        "how-to/failover.md",
        "how-to/install.md",
        "how-to/nats.md",
        "how-to/operate.md",
        "how-to/secrets.md",
        "how-to/several-nodes.md",
        "how-to/signed-calls.md",
        "how-to/trace.md",
        "how-to/troubleshoot.md",
        "how-to/upgrade.md",
        "reference/cli.md",
        "reference/functions.md",
        "reference/retention.md",
        "reference/settings.md",
    }


class Reader:
    """Runs the blocks of a page, in a folder and with a server of its own."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self._folder = folder
        self._ports = {"8080": str(server.port), **{port: str(free_port()) for port in FIXED_PORTS}}
        (folder / ".curlrc").write_text(CURL_SETTINGS)
        self._environment = clean_environment() | {
            "PATH": path_with_flowserver(),
            "CURL_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "configuration"),
            "FLOWSERVER_URL": server.url,
            "NODE_PATH": str(NODE_MODULES),
        }

    def adapted(self, text: str) -> str:
        """The text with this test's ports."""
        return re.sub(r"\b(8080|9000|9100)\b", lambda port: self._ports[port[1]], text)

    def run(self, block: Block) -> str:
        """Run a block, which must succeed; returns its output."""
        text = self.adapted(block.text)
        match block.language:
            case "bash":
                return self._succeed(block, "bash", "-euo", "pipefail", "-c", text)
            case "console":
                return self._converse(block, text)
            case "js":
                return self._succeed(block, NODE, "-e", text)
        printed = self._succeed(block, sys.executable, "-W", "ignore", "-c", text)
        if "v3" in block.marks:
            older = {"PYTHONPATH": SDK_V3_FOLDER}
            assert self._succeed(block, sys.executable, "-W", "ignore", "-c", text, further=older) == printed
        return printed

    def _converse(self, block: Block, text: str) -> str:
        """Every command prints the text that follows it; its exit code is not checked."""
        for turn in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, _, expected = turn.partition("\n")
            assert self._ran(command_line(command)).stdout == expected, block
        return text

    @contextmanager
    def hosting(self, block: Block, words: str) -> Iterator[None]:
        """Run a block until the end of the test; it is ready when it has printed the words."""
        command = command_line(f"exec {self.adapted(block.text)}")
        with subprocess.Popen(
            command, cwd=self._folder, env=self._environment, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            try:
                assert any(words in line for line in process.stdout), block
                yield
            finally:
                process.terminate()

    def _succeed(self, block: Block, *command: str, further: dict[str, str] | None = None) -> str:
        done = self._ran(command, further)
        assert done.returncode == 0, f"{block}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def _ran(self, command: tuple[str, ...], further: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment | (further or {}),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def command_line(text: str) -> tuple[str, ...]:
    return ("bash", "-euo", "pipefail", "-c", text)
