"""Calls that leave a test: its file says of a mock that it is real, and what it reaches.

Such a call is outside virtual time: it is made when its step makes it, the clock of the test does not move meanwhile,
and the answer comes at the instant that the mock says. What is reached, and how, is decided above this package.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.language.diagnostics import shown
from flowserver.machine.commands import InvokeTask
from flowserver.machine.messages import Result

REAL_CALL_SECONDS: Final = 60
"""The longest that a real call may take, in real time."""

CALLEE_PATTERN: Final = r"^([hH][tT][tT][pP][sS]?://|[^:]+\.py:[A-Za-z_][A-Za-z0-9_]*$)"
"""How a callee is written."""

_CALLEE: Final = re.compile(CALLEE_PATTERN)

NO_CALLEE: Final = "write a URL, or a Python handler as `file.py:function`"


@dataclass(frozen=True, slots=True)
class RealCall:
    """One call, with what the callee gets as its input."""

    command: InvokeTask
    input: JsonObject
    flow_name: str
    execution_name: str
    seconds: float
    """How long it may take, of real time."""
    wants_result: bool = True
    """Whether an answer that is no JSON object is a failure. What takes a message may answer anything."""


Callee = Callable[[RealCall], Result]
"""Makes a call, and returns what it came to; raises nothing but KeyboardInterrupt."""

OpenCallee = Callable[[str, Path], Callee]
"""The callee that a test file in this folder names; raises NotAvailable."""


class NotAvailable(Exception):
    """What a test file names cannot be used here; `hint` says what to do instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def is_callee(name: str) -> bool:
    """Whether a text is written as a callee is."""
    return _CALLEE.match(name) is not None


def check_callee(name: str) -> None:
    """Raise NotAvailable unless the text is written as a callee is."""
    if not is_callee(name):
        raise NotAvailable(f"{shown(name)} is nothing that can be called", NO_CALLEE)


def unopened(name: str, _folder: Path) -> Callee:
    """A callee that cannot be called, for a check of the file alone; raises NotAvailable."""
    check_callee(name)
    return _call_nothing


def _call_nothing(_call: RealCall) -> Result:
    raise AssertionError("the file was opened to be checked")


def open_none(_name: str, _folder: Path) -> Callee:
    """Where no real calls are made; raises NotAvailable."""
    raise NotAvailable("real calls are not available here", "mock the call, or run `flowserver test`")
