"""The sockets that `serve` opens, and those that it refuses to open."""

import socket

import pytest

from flowserver.api.keyless_access import UnsafeBind
from flowserver.cli import listening as module
from flowserver.cli.failures import CommandFailed
from flowserver.cli.listening import listening


@pytest.fixture
def names(monkeypatch):
    """The addresses of host names in a test."""
    known = {}
    monkeypatch.setattr(module, "resolve", lambda host: known.get(host, [host]))
    return known


def _addresses(*arguments, **options):
    with listening(*arguments, **options) as listeners:
        return [listener.getsockname()[:2] for listener in listeners]


def test_port_0_is_one_free_port_for_every_address(names):
    names["both"] = ["127.0.0.1", "127.0.0.2", "127.0.0.1"]
    (first, port), (second, same_port) = _addresses("both", 0, has_keys=False)
    assert (first, second) == ("127.0.0.1", "127.0.0.2")
    assert port == same_port > 0


def test_addresses_that_the_machine_lacks_are_skipped(names):
    names["some"] = ["192.0.2.1", "127.0.0.1"]
    assert [host for host, _ in _addresses("some", 0, has_keys=True)] == ["127.0.0.1"]
    with pytest.raises(CommandFailed, match="does not have that address"):
        _addresses("192.0.2.1", 0, has_keys=True)


def test_port_in_use_leaves_nothing_open(names):
    names["both"] = ["127.0.0.2", "127.0.0.1"]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = f"cannot listen on 127.0.0.1 port {port}: Address already in use; choose another with --port or"
        with pytest.raises(CommandFailed, match=words):
            _addresses("both", port, has_keys=False)
        with socket.create_server(("127.0.0.2", port)):
            pass


def test_the_checked_address_is_the_bound_address(names):
    names["mixed"] = ["127.0.0.1", "192.0.2.1"]
    with pytest.raises(UnsafeBind):
        _addresses("mixed", 0, has_keys=False)


@pytest.mark.parametrize("host", ["", "0.0.0.0"])
def test_every_address_needs_keys(host):
    with pytest.raises(UnsafeBind):
        _addresses(host, 0, has_keys=False)


@pytest.mark.parametrize("host", ["", "x" * 70, "no.such.name.invalid"])
def test_hosts_without_an_address(host, monkeypatch):
    def offline(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    if host.endswith(".invalid"):
        monkeypatch.setattr(socket, "getaddrinfo", offline)
    with pytest.raises(CommandFailed, match="cannot listen on"):
        _addresses(host, 0, has_keys=True)
