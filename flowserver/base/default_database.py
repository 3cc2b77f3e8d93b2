"""Where the data is when no setting says it.

A checkout keeps it in the working folder. A program that a package manager installed runs in any folder, so its data is
in the user's folder for data, as the XDG Base Directory Specification has it; but a `data/flowserver.db` in the working
folder is used if it is there.
"""

import os
from pathlib import Path
from typing import Final

IN_WORKING_FOLDER: Final = "sqlite:///data/flowserver.db"

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_FILE: Final = "flowserver.db"


def default_database_url() -> str:
    """The URL of the default database; its file, and the last two folders of it, need not exist."""
    return (
        IN_WORKING_FOLDER if not is_installed() or Path("data", _FILE).exists() else f"sqlite:///{_in_home() / _FILE}"
    )


def is_installed() -> bool:
    """Whether this code comes from a wheel, which holds the migrations beside the modules."""
    return (_PACKAGE / "_migrations").is_dir()


def _in_home() -> Path:
    folder = os.environ.get("XDG_DATA_HOME")
    return (Path(folder) if folder else Path.home() / ".local" / "share") / "flowserver"
