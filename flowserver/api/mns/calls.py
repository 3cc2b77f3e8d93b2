"""One call as the router hands it to the function that serves it, and the reading of its parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from flowserver.api.mns.answers import Answer
from flowserver.base.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Call:
    """A request: the names in its path, its query by lower-case name, its headers by lower-case name, its body."""

    names: tuple[str, ...]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def host_url(self) -> str:
        """Where the client believes this server to be."""
        host = self.headers.get("host", "")
        return host if host.startswith(("http://", "https://")) else f"http://{host}"


def located(call: Call, path: str, *, is_new: bool) -> Answer:
    """What was made is at `path`, or was there already; clients insist on the header."""
    return Answer(201 if is_new else 204, headers=((b"location", f"{call.host_url}{path}".encode()),))


def read_query(query: str) -> dict[str, str]:
    """Parameters by lower-case name, for SDKs spell them differently. Values may hold `=` and need not be escaped."""
    pairs = (part.partition("=") for part in query.split("&") if part)
    return {unquote(name).lower(): unquote(value) for name, _, value in pairs}


def integer(name: str, text: str) -> int:
    """A whole number, not negative; raises InvalidArgument."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    raise InvalidArgument(f"{name} must be a whole number")


def boolean(name: str, text: str) -> bool:
    """`True` or `False`, in any case; raises InvalidArgument."""
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise InvalidArgument(f"{name} must be True or False")
    return value == "true"
