"""The one error of the hosting program, and what it says to whoever has no token."""

from typing import Final

KEY_WANTED: Final = (
    "the server has access keys: set FLOWSERVER_TOKEN or --token to what `flowserver keys create` has shown"
)
"""What a program says whose requests were answered with 401."""


class HostingError(Exception):
    """The functions cannot be hosted; the message says why, in words for whoever started the program."""
