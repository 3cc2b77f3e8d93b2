"""A program on a terminal: reads its output and sends the keys that a user presses."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from tests.support.server import PATIENCE_SECONDS

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[(3[1-7]|9[0-7])m")
CLEAR = "\x1b[2J"
CTRL_C = b"\x03"
EMPTY_READ = 65_536


class Terminal:
    """`flowserver ARGUMENTS` in its own session, with a terminal of 100 columns for stdin, stdout and stderr."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._own, theirs = pty.openpty()
        variables = {**environment, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", "PYTHONUTF8": "1"}
        command = [sys.executable, "-c", PROGRAM, *arguments]
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
        )
        os.close(theirs)
        self.colours: set[str] = set()
        """The printed colours, as numbers of the terminal."""
        self.text = ""
        """The output so far, without colours and moves of the cursor."""
        self.clears = 0
        """How often the screen was cleared."""

    def read_until(self, words: str) -> None:
        """Return when the text was printed; AssertionError if the program ends before."""
        while words not in self.text:
            assert self._read(), f"no {words!r}:\n{self.text}"

    def read_to_the_end(self) -> int:
        """The exit code of the program; `text` is then its complete output."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_SECONDS)

    def press(self, key: bytes) -> None:
        """Send what a key on the keyboard sends."""
        os.write(self._own, key)

    def _read(self) -> bool:
        try:
            piece = os.read(self._own, EMPTY_READ)
        except OSError:  # the program has closed the terminal
            return False
        printed = piece.decode(errors="replace")
        self.colours.update(COLOUR.findall(printed))
        self.clears += printed.count(CLEAR)
        self.text += CONTROL.sub("", printed).replace("\r\n", "\n")
        return bool(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_SECONDS)
        os.close(self._own)


PROGRAM = """\
import fcntl, signal, sys, termios
signal.signal(signal.SIGINT, signal.default_int_handler)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from flowserver.cli.main import app
app(sys.argv[1:], prog_name="flowserver")
"""
"""The terminal becomes the controlling terminal of the session, so that Ctrl-C sends a signal. Tests in the background
of a shell would otherwise ignore it.
"""
