"""Programs of this folder that stand in for those that a bare machine lacks. Where one is installed, it runs itself."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.support import curl, ssh_keygen

STAND_INS: Final = {"curl": curl, "ssh-keygen": ssh_keygen}


def path_with_stand_ins(path: str) -> str:
    """The PATH, with a folder added that has what none of its folders has."""
    missing = [name for name in STAND_INS if not shutil.which(name, path=path)]
    if not missing:
        return path
    folder = Path(tempfile.gettempdir()) / f"flowserver-{'-'.join(missing)}-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for name in missing:
        file = Path(STAND_INS[name].__file__ or "").resolve()
        whole = folder / f".{name}-{os.getpid()}"
        whole.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{file}" "$@"\n')
        whole.chmod(0o755)
        whole.replace(folder / name)  # another test process may be running it
    return f"{path}:{folder}"
