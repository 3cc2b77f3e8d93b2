"""Addresses that are never called, in every spelling of a URL and for every resolved name."""

import pytest

from flowserver.base.errors import InvalidArgument
from flowserver.invokers.calls import Endpoint, Failed, Replied
from flowserver.invokers.endpoint_rules import check_url
from flowserver.invokers.forbidden_addresses import ORDINARY, AddressRules, Guard
from flowserver.invokers.hooks import Hooks
from flowserver.invokers.http import HttpInvoker
from flowserver.invokers.network_lists import NetworkListInvalid, read_network_list
from flowserver.invokers.outgoing import Outgoing
from flowserver.invokers.web_requests import WebRequest
from tests.invokers.wire_server import FixedResolver, reply_with

NOT_PRIVATE = "the server does not call private, link-local, metadata, multicast or unspecified addresses"

SERVICES = AddressRules(
    private=False,
    allowed=read_network_list("allowed", ["10.1.0.0/16", "2001:db8::7", "*.services.example", "pay.example"]),
    denied=read_network_list("denied", ["10.1.2.0/24", "8.8.0.0/16", "8.8.8.8", "old.services.example", "*.test."]),
)


def guard() -> Guard:
    return ORDINARY.guard_of("functions.example")


def rules(*, allowed: str = "", denied: str = "", private: bool = True) -> AddressRules:
    lists = (read_network_list("a_setting", text.split()) for text in (allowed, denied))
    return AddressRules(private=private, **dict(zip(("allowed", "denied"), lists, strict=True)))


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "100.100.100.200",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "fd20:ce::254",
        "ff02::1",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::6464:64c8",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:ffff::6464:64c8",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:7:a9:fea9:fe00:0",
        "64:ff9b:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::1",
        "2001:0:808:808:0:0:5601:5601",
        "0251.0376.0251.0376",
        "2852039166",
        "not-an-address",
    ],
)
def test_refused(address):
    assert guard().refuses(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "fd12::1",
        "64:ff9b::a00:1",
        "64:ff9b:1::a00:1",
        "64:ff9b:1:a00:0:100::",
        "2002:a00:1::1",
        "2001:0:808:808:0:0:f7f7:f7f7",
        "8.8.8.8",
        "2001:db8::1",
    ],
)
def test_allowed(address):
    assert not guard().refuses(address)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "100.100.100.200",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[fe80::1%25lo]",
        "[fd00:ec2::254]",
        "[::]",
        "0.0.0.0",
        "0",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.43518",
        "0xa9.0xfe.0xa9.0xfe",
        "0xA9FEA9FE",
        "①⑥⑨.254.169.254",
        "169。254。169。254",
    ],
)
async def test_literal_hosts(invoker, invocation, host):
    result = await invoker.invoke(invocation(), Endpoint(f"http://{host}/latest/meta-data", {}, 5))
    assert result.error == "FC.InvalidArgument"
    assert result.cause.startswith("shop/charge was not called")


@pytest.mark.parametrize("addresses", [["169.254.169.254"], ["fe80::1", "::ffff:100.100.100.200", "0.0.0.0"]])
async def test_names_that_resolve_to_them(limits, invocation, addresses):
    invoker = HttpInvoker(limits, FixedResolver(addresses))
    result = await invoker.invoke(invocation(), Endpoint("http://metadata.example/", {}, 5))
    await invoker.close()
    assert result.error == "FC.InvalidArgument"
    assert result.cause.startswith("shop/charge was not called")


async def test_checked_address_is_the_one_connected_to(limits, invocation, server):
    names = FixedResolver(["127.0.0.1"], ["169.254.169.254"])
    invoker = HttpInvoker(limits, names)
    rebinding = Endpoint(f"http://rebinding.example:{server.port}/", {}, 5)
    replies = [await invoker.invoke(invocation(), rebinding) for _ in range(2)]
    assert [isinstance(reply, Replied) and reply.output for reply in replies] == [{}, {}]
    await invoker.close()
    assert names.asked == 1


async def test_allowed_address_of_a_name_is_used(limits, invocation, server):
    invoker = HttpInvoker(limits, FixedResolver(["169.254.169.254", "127.0.0.1"]))
    result = await invoker.invoke(invocation(), Endpoint(f"http://mixed.example:{server.port}/", {}, 5))
    await invoker.close()
    assert isinstance(result, Replied)
    assert result.output == {}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::1]",
        "[2001:0:808:808:0:0:80ff:fffe]",
        "10.0.0.1",
        "172.31.255.255",
        "192.168.0.1",
        "100.64.0.1",
        "[fd12::1]",
        "①②⑦.0.0.1",
    ],
)
async def test_without_private_functions_no_spelling_reaches_this_machine(limits, invocation, server, host):
    invoker = HttpInvoker(limits, outgoing=Outgoing(AddressRules(private=False)))
    result = await invoker.invoke(invocation(), Endpoint(f"http://{host}:{server.port}/", {}, 5))
    sent = await invoker.send(WebRequest("POST", f"http://{host}:{server.port}/", 5))
    await invoker.close()
    assert isinstance(result, Failed)
    assert isinstance(sent, Failed)
    assert (result.error, sent.error) == ("FC.InvalidArgument", "FC.InvalidArgument")
    assert result.cause in {f"shop/charge was not called: {why}." for why in (NOT_PRIVATE, "its URL is not valid")}
    assert result.cause.endswith("valid.") or sent.cause.endswith(f"was not called: {NOT_PRIVATE}.")
    assert server.connections == 0


async def test_hooks_reach_no_refused_address(limits, server, caplog):
    """The name is allowed when the hook is registered; the address is checked when it is called."""
    url = f"http://rebinding.example:{server.port}/hook"
    invoker = HttpInvoker(limits, FixedResolver(["127.0.0.1"]), outgoing=Outgoing(AddressRules(private=False)))
    hooks, endpoint = Hooks(invoker), Endpoint(url, {}, 5, initialize_url=url, pre_stop_url=url)
    failure = await hooks.initialize(endpoint, "r")
    await hooks.pre_stop(endpoint, "r")
    await invoker.close()
    assert failure is not None
    assert failure.cause.endswith(f"was not called: {NOT_PRIVATE}.")
    assert NOT_PRIVATE in caplog.text
    assert server.connections == 0


async def test_a_name_that_resolves_to_something_else_the_next_time(limits, invocation, server):
    """The server at the private address is there: only the check at the socket keeps it from being called."""
    names = FixedResolver(["127.0.0.1"], ["::ffff:127.0.0.1"], ["127.0.0.1"])
    invoker = HttpInvoker(limits, names, outgoing=Outgoing(rules(allowed="pay.example", private=False)))
    trusted = await invoker.invoke(invocation(), Endpoint(f"http://PAY.example.:{server.port}/", {}, 5))
    rebinding = Endpoint(f"http://rebinding.example:{server.port}/", {}, 5)
    refused = [await invoker.invoke(invocation(), rebinding) for _ in range(2)]
    await invoker.close()
    assert isinstance(trusted, Replied)
    assert [each.error for each in refused] == ["FC.InvalidArgument"] * 2
    assert (server.connections, names.asked) == (1, 2)


async def test_redirects_are_not_followed(limits, invocation, server):
    """The status is the answer, wherever it points."""
    server.answer = reply_with(b"", 307, f"location: http://127.0.0.1:{server.port}/elsewhere")
    invoker = HttpInvoker(limits, outgoing=Outgoing(rules(allowed="127.0.0.0/8", private=False)))
    result = await invoker.invoke(invocation(), Endpoint(server.url, {}, 5))
    await invoker.close()
    assert (result.error, len(server.requests)) == ("FC.InvalidArgument", 1)


@pytest.mark.parametrize(
    ("host", "address", "is_called"),
    [
        ("any.example", "10.1.9.9", True),
        ("any.example", "10.1.2.3", False),  # the narrower network
        ("any.example", "10.2.0.1", False),
        ("any.example", "8.8.4.4", False),
        ("any.example", "1.1.1.1", True),
        ("any.example", "2001:db8::7", True),
        ("any.example", "64:ff9b::808:404", False),
        ("pay.example", "10.2.0.1", True),
        ("PAY.EXAMPLE.", "127.0.0.1", True),
        ("pay.example", "169.254.169.254", False),  # no setting opens these
        ("new.services.example", "10.2.0.1", True),
        ("old.services.example", "1.1.1.1", False),
        ("services.example", "10.2.0.1", False),  # the pattern is for names below it
        ("xpay.example", "10.2.0.1", False),
        ("a.b.test", "1.1.1.1", False),
    ],
)
def test_the_narrowest_network_or_name_decides(host, address, is_called):
    assert SERVICES.guard_of(host).refuses(address) is not is_called


def test_only_what_is_allowed():
    some = rules(allowed="192.0.2.0/24 pay.example 8.8.8.8", denied="0.0.0.0/0 ::/0 8.8.8.8")
    callable_now = [not some.guard_of("any").refuses(each) for each in ("192.0.2.1", "1.1.1.1", "2600::1", "8.8.8.8")]
    assert callable_now == [True, False, False, False]  # of equal networks the denied one decides
    assert not some.guard_of("pay.example").refuses("2600::1")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("10.1.2.3/8", "a_setting: 10.1.2.3/8 has host bits set"),
        ("10.0.0.0/33", "a_setting: .*10.0.0.0/33"),
        ("http://pay.example", "a_setting"),
        ("a b", "'a b' is no network and no host; write 10.0.0.0/8"),
        ("", "is no network"),
        ("*", "is no network"),
        ("pay.*", "is no network"),
        ("::ffff:10.0.0.0/104", "write ::ffff:10.0.0.0/104 as a network of IPv4 addresses"),
    ],
)
def test_wrong_entries(entry, message):
    with pytest.raises(NetworkListInvalid, match=message):
        read_network_list("a_setting", [entry])


@pytest.mark.parametrize("host", ["2852039166", "0251.0376.0251.0376", "0xA9FEA9FE", "0", "[::ffff:169.254.169.254]"])
def test_spellings_of_addresses_that_cannot_be_registered(host):
    with pytest.raises(InvalidArgument, match="url is refused: the server does not call link-local"):
        check_url(f"http://{host}/")
