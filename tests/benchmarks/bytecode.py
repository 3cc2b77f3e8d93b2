"""Compiled modules for the measured processes, even if the tests' environment turns byte code off."""

import atexit
import sys
import tempfile
from functools import cache


def compiled() -> dict[str, str]:
    """Environment variables with which a Python process finds its modules compiled, after one process was started with
    them.

    An installed server has compiled modules; without them a start takes several times as long. The variables are needed
    only where this process may not write byte code.
    """
    if not sys.dont_write_bytecode:
        return {}
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": _folder()}


@cache
def _folder() -> str:
    """One folder for the lifetime of this process."""
    folder = tempfile.TemporaryDirectory(prefix="flowserver-bytecode-")
    atexit.register(folder.cleanup)
    return folder.name
