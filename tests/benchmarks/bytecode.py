"""Byte code for the processes that are measured, whatever the environment of the tests says about it."""

import atexit
import sys
import tempfile
from functools import cache


def compiled() -> dict[str, str]:
    """Variables with which a Python process finds its modules compiled, once a first one has been started with them.

    An installed server finds that, too; without it a start would take several times as long. They are needed only where
    this process was told to leave no byte code behind.
    """
    if not sys.dont_write_bytecode:
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": _folder()}


@cache
def _folder() -> str:
    """One folder for as long as this process runs."""
    folder = tempfile.TemporaryDirectory(prefix="flowserver-bytecode-")
    atexit.register(folder.cleanup)
    return folder.name
