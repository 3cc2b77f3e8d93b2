"""Why functions cannot be hosted: an error class for each kind of reason, each with an exit code of its own."""

from typing import Final

KEY_WANTED: Final = (
    "the server has access keys: set FLOWSERVER_TOKEN, or --token @FILE, to what `flowserver keys create` has shown"
)
"""What a program says whose requests were answered with 401."""


class HostingError(Exception):
    """The functions cannot be hosted; the message says why, for the person who started the program."""


class HandlerFailed(HostingError):
    """A handler's file raises an error when it is loaded."""


class HostingMistake(HostingError):
    """The functions file or an option cannot be understood, or something is missing from it."""


class HostingMissing(HostingError):
    """A file or an address that the program needs does not exist on this machine."""


class HostingUnreachable(HostingError):
    """The server cannot be reached or refuses the registration, or the system refuses a file or a port."""


class HostingConflict(HostingError):
    """A conflict: the port is in use, or the server refuses a registration with 409."""
