"""The network addresses that no function call may reach, and the socket that refuses them.

Users choose the URLs of functions, and the server runs inside a network. Without this guard a call could read the
credentials that cloud machines serve to themselves at link-local addresses (CVE-2026-7724 is such a hole, opened
by checking a name and resolving it again for the connection). Loopback and private networks stay open, because
that is where the functions of a self-hosted server live.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

REFUSED_NETWORKS = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "unspecified"),
        ("169.254.0.0/16", "link-local; instance metadata of most clouds"),
        ("100.100.100.200/32", "instance metadata of Alibaba Cloud"),
        ("168.63.129.16/32", "instance metadata of Azure"),
        ("192.0.0.192/32", "instance metadata of Oracle Cloud"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("::/128", "unspecified"),
        ("fe80::/10", "link-local"),
        ("fd00:ec2::/64", "instance metadata of AWS"),
        ("fd20:ce::254/128", "instance metadata of Google Cloud"),
        ("ff00::/8", "multicast"),
    )
)

_NAT64 = ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_LOCAL_NAT64_OCTETS = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))
"""Where prefixes of 48, 56, 64 and 96 bits have the IPv4 address (RFC 6052); which is in use only the network knows."""
_NO_HOST = ip_network("0.0.0.0/8")
_IPV4_COMPATIBLE = ip_network("::/96")


class AddressRefused(OSError):
    """The server does not call this address. The message is constant, so that several refusals count as one."""

    def __init__(self) -> None:
        super().__init__("the server does not call link-local, metadata, multicast or unspecified addresses")


def is_address(host: str) -> bool:
    """Whether the host is an IP address, not a name that resolves to one."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_refused(host: str) -> bool:
    """Whether to refuse the address that a socket is about to connect to; everything but an IP address is refused."""
    try:
        addresses = _meant(ip_address(host))
    except ValueError:
        return True
    return any(address in network for address in addresses for network, _ in REFUSED_NETWORKS)


def open_socket(address_info: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """Make the socket for one resolved address, as `getaddrinfo` gives it, or raise AddressRefused.

    The HTTP client calls this with the very address it then connects to. Names, literal addresses in any spelling
    and repeated look-ups therefore all pass here, and nothing is resolved between the check and the connection.
    """
    family, kind, protocol, _, target = address_info
    if is_refused(str(target[0])):
        raise AddressRefused
    return socket.socket(family, kind, protocol)


def _meant(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Every address that a connection to this one may reach.

    Those are the address itself and the IPv4 addresses that it may embed: mapped, compatible, NAT64, 6to4, and
    Teredo's server and client.
    """
    if isinstance(address, IPv4Address):
        return [address]
    low_bits = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped or address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return [low_bits]
    if address in _LOCAL_NAT64:
        octets = address.packed
        hidden = [IPv4Address(bytes(octets[place] for place in places)) for places in _LOCAL_NAT64_OCTETS]
        # Read at a place that is not in use, zeros are padding and no address.
        return [each for each in hidden if each not in _NO_HOST] or [low_bits]
    return [address, *(address.teredo or ()), *([address.sixtofour] if address.sixtofour else ())]
