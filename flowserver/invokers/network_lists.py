"""Lists of networks and hosts, as settings write them, and addresses as URLs may spell them."""

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from yarl import URL

_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\Z")
_ADDRESSES_IN_NUMBERS: Final = re.compile(r"[0-9a-fx.]+\Z")
_MAPPED: Final = IPv6Network("::ffff:0:0/96")


class NetworkListInvalid(Exception):
    """A setting lists something else than networks and hosts; the message names the setting."""


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A host's name, or all names below one (`*.example`)."""

    name: str
    is_suffix: bool

    def matches(self, host: str) -> bool:
        """Whether a URL's host has such a name."""
        name = _plain(host)
        return name.endswith(f".{self.name}") if self.is_suffix else name == self.name


@dataclass(frozen=True, slots=True)
class NetworkList:
    """Networks and hosts."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    hosts: tuple[HostPattern, ...] = ()


NOTHING: Final = NetworkList()


def read_network_list(setting: str, entries: Iterable[str]) -> NetworkList:
    """The list from a setting's entries, such as 10.0.0.0/8, ::1, pay.example or *.example.

    Raises NetworkListInvalid.
    """
    networks: list[IPv4Network | IPv6Network] = []
    hosts: list[HostPattern] = []
    for entry in entries:
        address = literal_address(entry)
        if address is not None or "/" in entry:
            networks.append(_network(setting, entry if address is None else str(address)))
        else:
            hosts.append(_host(setting, entry))
    return NetworkList(tuple(networks), tuple(hosts))


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is, in any spelling that the system takes (0x7f.1, 2130706433); None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    if not _ADDRESSES_IN_NUMBERS.match(host.lower()):  # otherwise the system would overlook what follows a blank
        return None
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _network(setting: str, text: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise NetworkListInvalid(f"the setting {setting}: {error}") from None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        raise NetworkListInvalid(f"the setting {setting}: write {text} as a network of IPv4 addresses")
    return network


def _host(setting: str, text: str) -> HostPattern:
    name = text.removeprefix("*.")
    try:
        pattern = HostPattern(_plain(URL.build(scheme="http", host=name).raw_host or ""), name != text)
    except ValueError:
        pattern = HostPattern("", is_suffix=False)
    if not _NAME.match(pattern.name):
        forms = "10.0.0.0/8, ::1, pay.example or *.example"
        raise NetworkListInvalid(f"the setting {setting}: {text!r} is no network and no host; write {forms}")
    return pattern


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
