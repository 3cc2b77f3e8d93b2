"""Who may reach a server that has no access keys: programs on this machine, and no web page in a browser.

Such a server is open, so it binds loopback only. It refuses what a reverse proxy or a tunnel on this machine passes on
from others, and what a browser sends on behalf of a foreign page: a Host that a stranger's DNS made point here (DNS
rebinding), a foreign Origin, or a request that the browser itself marks as cross-site (an image or link with
`?Action=DeleteFlow` carries no Origin). Programs send none of these.
Decides only; reads no settings and answers no request.
"""

import re
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, ip_address

from starlette.types import Scope

from flowserver.base.errors import AccessDenied

SERVICE_HOSTS = ("*.fnf.aliyuncs.com", "*.fc.aliyuncs.com", "*.mns.*.aliyuncs.com")
"""The cloud services' own names: a stock client that is given this server as its HTTP proxy goes on sending them."""

_LOCAL_NAMES = ("localhost", "*.localhost")
_LOOPBACK_V4 = IPv4Network("127.0.0.0/8")
_LOOPBACK_V6 = IPv6Address("::1")
_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[A-Za-z0-9._-]{1,253}))(?::[0-9]{1,5})?\Z")
_OF_PROXIES = frozenset((b"forwarded", b"via", b"x-real-ip"))
_OF_PROXIES_TOO = b"x-forwarded"  # -For, -Host, -Proto, ...
_OF_BROWSERS = ("sec-fetch-site", "origin", "referer")
_SCHEME = re.compile(r"https?://", re.IGNORECASE)


class UnsafeBind(ValueError):
    """A server without access keys was configured to listen where other machines can reach it."""


def check_open_request(
    host_header: str | None,
    origin_header: str | None,
    allowed_hosts: Collection[str],
    fetch_site: str | None = None,
) -> None:
    """Refuse a foreign request to a server without access keys; None means that a header is missing.

    Host must be localhost, *.localhost, 127.0.0.0/8, [::1] or one of `allowed_hosts` (names, or `*.` and a domain),
    with any port, or one of SERVICE_HOSTS. Raises AccessDenied, also as `check_page`.
    """
    if not _is_own_host(host_header, allowed_hosts):
        raise _denied("Host", host_header)
    check_page(origin_header, fetch_site, allowed_hosts)


def check_page(origin_header: str | None, fetch_site: str | None, allowed_hosts: Collection[str]) -> None:
    """Refuse a request that a page of another site makes a browser send to a server without access keys.

    Origin, if any, must be an http or https origin of a local host or of one of `allowed_hosts`. Sec-Fetch-Site
    (`fetch_site`) must not be `cross-site`. Raises AccessDenied.
    """
    local = (*_LOCAL_NAMES, *allowed_hosts)
    if origin_header is not None and not _is_one_of(_host_of_origin(origin_header), local):
        raise _denied("Origin", origin_header)
    if fetch_site is not None and fetch_site.strip().lower() == "cross-site":
        raise _denied("Sec-Fetch-Site", fetch_site)


def refusal_of_stranger(scope: Scope, allowed_hosts: Collection[str]) -> AccessDenied | None:
    """Why a server without access keys refuses this HTTP request; None if a local program sent it directly.

    The connection must come from loopback, no header may say that a proxy forwarded the request (X-Forwarded-*,
    Forwarded, X-Real-IP, Via), and there must be one Host, as for `check_open_request`. Reads the headers once.
    """
    peer: tuple[str, int] | None = scope.get("client")
    if peer is None or not is_loopback(peer[0]):
        return _refusal(f"The connection comes from {peer[0] if peer else 'nowhere'}")
    host: str | None = None
    for name, value in scope["headers"]:
        if name == b"host":
            if host is not None:
                return _refusal("There are two Host headers")
            host = value.decode("latin-1")
        elif name in _OF_PROXIES or name.startswith(_OF_PROXIES_TOO):
            return _refusal(
                f"The {name.decode('latin-1')[:100].title()} header says that a proxy forwarded the request"
            )
    return None if _is_own_host(host, allowed_hosts) else _denied("Host", host)


def check_change_by_get(headers: Mapping[str, str]) -> None:
    """Refuse a GET that changes something if a browser sends it; header names are in lower case.

    A page needs no script to have a browser send a GET, and no browser marks every such request: Sec-Fetch-Site goes to
    trustworthy origins only, Origin not with images, and a page can suppress Referer. But all name themselves Mozilla,
    which no SDK does. Raises AccessDenied.
    """
    if headers.get("user-agent", "").startswith("Mozilla/") or any(name in headers for name in _OF_BROWSERS):
        raise AccessDenied("A browser cannot change anything by GET; send a POST.")


def resolve(host: str) -> list[str]:
    """The addresses that listening on `host` would bind; raises OSError for an unknown name."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return [str(address[0]) for *_, address in found]


def check_bind(host: str, has_keys: bool, resolve: Callable[[str], list[str]] = resolve) -> None:
    """Make sure that a server without keys listens on loopback only; a name must resolve to loopback alone.

    Raises UnsafeBind, with words for the person who started the server.
    """
    if has_keys:
        return
    try:
        addresses = resolve(host) if host else []
    except OSError as error:
        raise UnsafeBind(f"cannot listen on {host!r}: {error.strerror}") from None
    except UnicodeError:
        raise UnsafeBind(f"cannot listen on {host!r}: not a host name") from None
    if not addresses or not all(is_loopback(address) for address in addresses):
        raise UnsafeBind(
            f"refusing to listen on {host!r} without access keys: anybody who can reach it could run flows. "
            "Listen on 127.0.0.1, or create a key first: flowserver keys create"
        )


def _denied(header: str, value: str | None) -> AccessDenied:
    shown = "is missing" if value is None else f"{value[:100]!r} is foreign"
    return _refusal(f"The {header} header {shown}")


def _refusal(reason: str) -> AccessDenied:
    return AccessDenied(
        f"{reason}. Without access keys this server answers local programs only, and nothing that a proxy forwards; "
        "to serve others, create a key: flowserver keys create"
    )


def _is_own_host(header: str | None, allowed_hosts: Collection[str]) -> bool:
    # Some SDK clients copy an endpoint with its scheme into Host: `http://127.0.0.1:8080`.
    return _is_one_of(_host_of(_without_scheme(header or "")), (*_LOCAL_NAMES, *allowed_hosts, *SERVICE_HOSTS))


def _host_of_origin(origin: str) -> str | None:
    authority = _without_scheme(origin)
    return _host_of(authority) if authority != origin else None


def _without_scheme(text: str) -> str:
    return _SCHEME.sub("", text, count=1) if _SCHEME.match(text) else text


def _host_of(authority: str) -> str | None:
    """The host of `host[:port]` in lower case, or None for anything that is not exactly that."""
    match = _AUTHORITY.match(authority.removesuffix("/"))
    return (match["ipv6"] or match["name"]).lower().removesuffix(".") if match else None


def _is_one_of(host: str | None, patterns: Iterable[str]) -> bool:
    return host is not None and (is_loopback(host) or any(_matches(host, pattern.lower()) for pattern in patterns))


def _matches(host: str, pattern: str) -> bool:
    return fnmatchcase(host, pattern) if "*" in pattern else host == pattern


@lru_cache(maxsize=1_000)
def is_loopback(host: str) -> bool:
    """Whether it is an address of this machine alone, also if written as `::ffff:127.0.0.1`; resolves no names."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        return address == _LOOPBACK_V6 or (address.ipv4_mapped is not None and address.ipv4_mapped in _LOOPBACK_V4)
    return address in _LOOPBACK_V4
