"""A request that is no call of a function, such as a notification of a subscriber: data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from yarl import URL

REPLY_BYTES_MAX = 65_536
"""What a reply may bring along; mostly it is its status alone that counts."""


@dataclass(frozen=True, slots=True)
class WebRequest:
    """One request to a URL that `check_url` has accepted, when it was given to the server."""

    method: str
    url: str = field(repr=False)  # its query may hold secrets: keep it out of logs
    seconds: float
    """How long all of it may take."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)

    @property
    def title(self) -> str:
        """Whom it is for, as people may see it."""
        return URL(self.url).host_port_subcomponent or ""
