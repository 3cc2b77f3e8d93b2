"""A request that calls no function, such as a notification to a subscriber: data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from yarl import URL

REPLY_BYTES_MAX = 65_536
"""The most bytes of a reply's body; mostly only its status counts."""


@dataclass(frozen=True, slots=True)
class WebRequest:
    """One request to a URL that `check_url` has accepted, when it was given to the server."""

    method: str
    url: str = field(repr=False)  # its query may hold secrets: keep it out of logs
    seconds: float
    """The time limit of the request, connecting and the reply included."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    message_id: str = ""
    """The same for a repetition; a server that signs its requests signs those that have one."""

    @property
    def title(self) -> str:
        """The request's destination for logs and error messages, without secrets."""
        return URL(self.url).host_port_subcomponent or ""
