"""The one error of the hosting program."""


class HostingError(Exception):
    """The functions cannot be hosted; the message says why, in words for whoever started the program."""
