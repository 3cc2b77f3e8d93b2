"""URLs of this machine's own sockets."""

from ipaddress import ip_address


def base_url(host: str, port: int) -> str:
    """The URL under which a server on this machine reaches a socket that is bound to this address."""
    if ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
