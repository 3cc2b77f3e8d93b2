"""The settings that name the broker of a queue."""

import pytest

from flowserver.invokers.brokers import Access, Outlet, OutletInvalid, read_outlets


def read(url, queue="orders"):
    return read_outlets({queue: url})[queue]


@pytest.mark.parametrize(
    ("url", "outlet"),
    [
        ("nats://broker", Outlet(Access("nats", ("broker",)), "orders")),
        ("nats://broker:4333/", Outlet(Access("nats", ("broker:4333",)), "orders")),
        ("nats://broker/shop.new-orders", Outlet(Access("nats", ("broker",)), "shop.new-orders")),
        ("nats://a,b:4333,[::1]:4222", Outlet(Access("nats", ("a", "b:4333", "[::1]:4222")), "orders")),
        ("nats://me:p%40%2C@a,b", Outlet(Access("nats", ("a", "b"), "me", "p@,"), "orders")),
        ("nats://token@a", Outlet(Access("nats", ("a",), "token"), "orders")),
        (
            "nats://a/x?stream=ORDERS&timeout_seconds=0.5",
            Outlet(Access("nats", ("a",)), "x", stream="ORDERS", timeout_seconds=0.5),
        ),
    ],
)
def test_valid_urls(url, outlet):
    assert read(url) == outlet


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "is not of the form nats://"),
        ("orders", "is not of the form nats://"),
        ("amqp://broker", "is not of the form nats://"),
        ("nats://broker/x#y", "is not of the form nats://"),
        ("nats://", "'' is not a host"),
        ("nats:///orders", "'' is not a host"),
        ("nats://a,,b", "'' is not a host"),
        ("nats://a:port", "'a:port' is not a host"),
        ("nats://a:0", "'a:0' is not a host"),
        ("nats://a b", "'a b' is not a host"),
        ("nats://u:p@a,u:p@b", "the user is written once"),
        ("nats://a/x/y", "a subject is written with letters, digits, _ and -, parted by dots"),
        ("nats://a/x.*", "a subject is written"),
        ("nats://a/x..y", "a subject is written"),
        ("nats://a?stream=x.y", "a stream is written with letters, digits, _ and -"),
        ("nats://a?stream=", "a stream is written"),
        ("nats://a?subject=x", "after the ? can stand stream and timeout_seconds, each once"),
        ("nats://a?stream=x&stream=y", "after the ? can stand"),
        ("nats://a?timeout_seconds=0", "timeout_seconds is above 0 and at most 60"),
        ("nats://a?timeout_seconds=nan", "timeout_seconds is above 0"),
        ("nats://a?timeout_seconds=soon", "could not convert"),
        ("nats://[::1", "'[::1' is not a host"),
    ],
)
def test_errors_name_the_queue_and_not_the_url(url, words):
    with pytest.raises(OutletInvalid) as raised:
        read(url)
    assert str(raised.value).startswith("the setting queues, orders: ")
    assert words in str(raised.value)


def test_names_of_queues():
    with pytest.raises(OutletInvalid, match="a queue's name has 1 to 120"):
        read("nats://a", queue="new orders")


def test_secrets_are_not_shown():
    outlet = read("nats://me:secret@broker")
    assert str(outlet) == "nats://broker/orders"
    assert "secret" not in repr(outlet) + repr(outlet.access)
    assert "token" not in repr(read("nats://token@broker"))
