"""The entry of the program: it starts and ends a process with little work of Python's own around the command.

Importing modules is most of what a short command does. The garbage collector would look through them again and again,
so it looks seldom; and a process that has nothing left to do ends without freeing each object.
"""

import atexit
import gc
import os
import sys
import threading
from typing import Any, Final, NoReturn, cast

from flowserver.base.lazy_import import load

NAME: Final = "flowserver"

GARBAGE_THRESHOLD: Final = 100_000
"""New containers between two looks of the garbage collector at them: more than a client makes in a short command."""

_COMPLETION_VARIABLE: Final = "_FLOWSERVER_COMPLETE"
"""Set by the shell when it wants to know what a word may be."""

_APP: Final = "flowserver.cli.main:app"


def main() -> NoReturn:
    """Run the command that the arguments name; raises SystemExit, unless the process ends here."""
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)
    if _COMPLETION_VARIABLE in os.environ:
        # typer draws help for the shell with rich, if there is one; this help is plain, and rich takes long to load.
        cast(dict[str, Any], sys.modules).setdefault("rich", None)
    try:
        load(_APP)(prog_name=NAME)
    except SystemExit as end:
        _end_now(end.code)
        raise
    raise SystemExit


def _end_now(code: object) -> None:
    """End the process as Python would, but leave its memory to the system; returns if there is more to do."""
    if threading.active_count() > 1 or not isinstance(code, int | None):
        return
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        return  # as usual, then: Python says what it could not write
    os._exit(code or 0)
