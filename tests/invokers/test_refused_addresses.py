"""Addresses that are never called, in every spelling of a URL and for every resolved name."""

import pytest

from flowserver.invokers.calls import Endpoint, Replied
from flowserver.invokers.forbidden_addresses import is_refused
from flowserver.invokers.http import HttpInvoker
from tests.invokers.wire_server import FixedResolver


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
    assert is_refused(address)


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
    assert not is_refused(address)


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
