"""How the running Python was built. It is also a program: the Makefile asks each interpreter that it finds.

`python interpreter.py` prints its rank: 3 if the interpreter was built with profile-guided optimisation, 2 if not, 1 if
it cannot make environments, and 0 if it is too old. An optimised build runs this server with a fifth less processor
time.
"""

import importlib.util
import sys
import sysconfig
from typing import Final

OLDEST: Final = (3, 11)


def is_optimised() -> bool:
    """Whether the interpreter's build flags say that it was built with profile-guided optimisation.

    Debian and its descendants build it so, and remove the flags from what they install; Windows' builds tell no flags.
    """
    if "deb_system" in sysconfig.get_scheme_names() or sysconfig.get_config_var("CONFIG_ARGS") is None:
        return True
    flags = ("CONFIG_ARGS", "PY_CFLAGS", "PY_CFLAGS_NODIST", "PY_CORE_CFLAGS")
    told = " ".join(str(sysconfig.get_config_var(name)) for name in flags)
    return any(word in told for word in ("--enable-optimizations", "-fprofile-use", "-fprofile-instr-use"))


def rank() -> int:
    """How well the interpreter suits an installation; see above."""
    if sys.version_info < OLDEST:
        return 0
    if not all(map(importlib.util.find_spec, ("ensurepip", "venv"))):
        return 1
    return 3 if is_optimised() else 2


if __name__ == "__main__":
    print(rank())  # noqa: T201
