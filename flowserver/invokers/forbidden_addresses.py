"""The network addresses that no function call may reach, and the sockets that refuse them.

Users choose the URLs of functions, and the server runs inside a network. Without this guard a call could read the
credentials that cloud machines serve to themselves at link-local addresses (CVE-2026-7724 is such a hole, opened
by checking a name and resolving it again for the connection). Loopback and private networks stay open unless a setting
closes them, because that is where the functions of a self-hosted server live.

The HTTP client asks `open_socket` for the socket of the very address it then connects to. Names, literal addresses in
any spelling and repeated look-ups therefore all pass there, and nothing is resolved between the check and the
connection.
"""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from flowserver.invokers.network_lists import NOTHING, NetworkList, literal_address

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

PRIVATE_NETWORKS = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("127.0.0.0/8", "loopback"),
        ("10.0.0.0/8", "private"),
        ("172.16.0.0/12", "private"),
        ("192.168.0.0/16", "private"),
        ("100.64.0.0/10", "shared by the customers of a provider (CGNAT)"),
        ("192.0.0.0/24", "protocol assignments"),
        ("198.18.0.0/15", "benchmarks of networks"),
        ("240.0.0.0/4", "reserved"),
        ("::1/128", "loopback"),
        ("fc00::/7", "unique local"),
        ("fec0::/10", "site-local"),
    )
)
"""What `--no-private-functions` refuses besides."""

_NAT64 = ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_LOCAL_NAT64_OCTETS = ((6, 7, 9, 10), (7, 9, 10, 11), (9, 10, 11, 12), (12, 13, 14, 15))
"""Where prefixes of 48, 56, 64 and 96 bits have the IPv4 address (RFC 6052); which is in use only the network knows."""
_NO_HOST = ip_network("0.0.0.0/8")
_IPV4_COMPATIBLE = ip_network("::/96")

_EVERYTHING: Final = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_ALWAYS: Final = "link-local, metadata, multicast or unspecified addresses"

NEVER_CALLED: Final = f"the server does not call {_ALWAYS}"


class AddressRefused(OSError):
    """The server does not call this address.

    The message is the same for all addresses of a host, so that their refusals count as one.
    """


class Guard:
    """Says which addresses may be called, for the hosts that it is for, and makes the sockets of these."""

    def __init__(self, networks: Iterable[tuple[IPv4Network | IPv6Network, bool]], message: str) -> None:
        """Of the networks around an address the narrowest says whether it is refused; of equal ones, the first.

        `REFUSED_NETWORKS` always are.
        """
        self._networks = sorted(networks, key=lambda each: -each[0].prefixlen)
        self.message = message

    def refuses(self, host: str) -> bool:
        """Whether to refuse the address that a socket is about to connect to; all but IP addresses are refused."""
        try:
            addresses = _meant(ip_address(host))
        except ValueError:
            return True
        return any(self._refuses(address) for address in addresses)

    def open_socket(self, address_info: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
        """Make the socket for one resolved address, as `getaddrinfo` gives it, or raise AddressRefused."""
        family, kind, protocol, _, target = address_info
        if self.refuses(str(target[0])):
            raise AddressRefused(self.message)
        return socket.socket(family, kind, protocol)

    def _refuses(self, address: IPv4Address | IPv6Address) -> bool:
        if any(address in network for network, _ in REFUSED_NETWORKS):
            return True
        return next((is_refused for network, is_refused in self._networks if address in network), False)


class AddressRules:
    """What may be called, by the settings; the guards that enforce it."""

    def __init__(self, *, private: bool = True, allowed: NetworkList = NOTHING, denied: NetworkList = NOTHING) -> None:
        """`private`: private networks may be called.

        Of all networks around an address, and of all names that a host has in the lists, the narrowest decides; of
        equal ones, the denied. The addresses of an allowed host are not looked for in the lists.
        """
        networks = [(network, True) for network in denied.networks]
        networks += [(network, False) for network in allowed.networks]
        networks += [(network, True) for network, _ in PRIVATE_NETWORKS if not private]
        kinds = _ALWAYS if private else f"private, {_ALWAYS}"
        setting = " (setting function_networks_denied)"
        kinds = f"addresses of some networks{setting}, nor {kinds}" if denied.networks else kinds
        self._ordinary = Guard(networks, f"the server does not call {kinds}")
        self._trusted = Guard((), NEVER_CALLED)
        self._denied = Guard([(each, True) for each in _EVERYTHING], f"the server does not call this host{setting}")
        hosts = [(host, self._denied) for host in denied.hosts] + [(host, self._trusted) for host in allowed.hosts]
        self._hosts = sorted(hosts, key=lambda each: (each[0].is_suffix, -len(each[0].name)))

    def guard_of(self, host: str) -> Guard:
        """The guard for the connections to a URL's host."""
        return next((guard for pattern, guard in self._hosts if pattern.matches(host)), self._ordinary)

    def refusal_of(self, host: str) -> str | None:
        """Why calls of a URL's host will be refused, as far as the host itself shows; else None."""
        guard, address = self.guard_of(host), literal_address(host)
        is_refused = guard is self._denied if address is None else guard.refuses(str(address))
        return guard.message if is_refused else None


def is_always_refused(address: str) -> bool:
    """Whether no server calls this IP address: no setting allows it."""
    return Guard((), NEVER_CALLED).refuses(address)


ORDINARY: Final = AddressRules()
"""Those of a server without settings."""


def _meant(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Every address that a connection to this one may reach.

    Those are the address itself and the IPv4 addresses that it may embed: mapped, compatible, NAT64, 6to4, and
    Teredo's server and client.
    """
    if isinstance(address, IPv4Address):
        return [address]
    low_bits = IPv4Address(int(address) & 0xFFFF_FFFF)
    if address.ipv4_mapped:
        return [low_bits]
    if address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        return [address, low_bits]
    if address in _LOCAL_NAT64:
        octets = address.packed
        hidden = [IPv4Address(bytes(octets[place] for place in places)) for places in _LOCAL_NAT64_OCTETS]
        # Read at a place that is not in use, zeros are padding and no address.
        return [address, *([each for each in hidden if each not in _NO_HOST] or [low_bits])]
    return [address, *(address.teredo or ()), *([address.sixtofour] if address.sixtofour else ())]
