"""URLs of servers: those of this machine's own sockets, and those that users configure."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

SERVER_DEFAULT: Final = "http://127.0.0.1:8080"
"""Where a server with the default settings answers, and which server a command talks to if none is named."""


def host_of(url: str) -> str | None:
    """The host of a base URL such as http://HOST:PORT; None if the text is not such a URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for an impossible port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        return None
    return parts.hostname


def base_url(host: str, port: int) -> str:
    """The URL under which a server on this machine reaches a socket that is bound to this address."""
    if ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
