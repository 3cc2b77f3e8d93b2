"""The variables `FLOWSERVER_…`. Those of commands that talk to a server are here, the others are its settings."""

import os
from typing import Final

PREFIX: Final = "FLOWSERVER_"

URL_VARIABLE: Final = f"{PREFIX}URL"
TOKEN_VARIABLE: Final = f"{PREFIX}TOKEN"
CA_FILE_VARIABLE: Final = f"{PREFIX}CA_FILE"
CONTEXT_VARIABLE: Final = f"{PREFIX}CONTEXT"

OF_COMMANDS: Final = frozenset((URL_VARIABLE, TOKEN_VARIABLE, CA_FILE_VARIABLE, CONTEXT_VARIABLE))
"""Variables that are no settings of the server, but options of commands that talk to one."""


def unknown_to_commands() -> list[str]:
    """The variables of the environment that are none of these: settings, or mistakes."""
    return [name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in OF_COMMANDS]
