"""Valid addresses of functions."""

import pytest
from yarl import URL

from flowserver.base.errors import InvalidArgument
from flowserver.invokers.calls import Endpoint
from flowserver.invokers.endpoint_rules import CALL_HEADERS, check_endpoint, check_hooks
from flowserver.invokers.request_bytes import lasting_head, write_request


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9100/shop/charge",
        "https://functions.example.com",
        "http://[::1]:9100/a%2Fb?code=1&x=a@b",
        "http://名前.example/函数",
        "HTTP://LOCALHOST/",
    ],
)
def test_accepted_urls(url):
    check_endpoint(url, {}, 60)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "http://"),
        ("ftp://host/", "http://"),
        ("file:///etc/passwd", "http://"),
        ("//host/path", "http://"),
        ("http:///path", "host"),
        ("http:host", "host"),
        ("http://user:pass@host/", "credentials"),
        ("http://user@host/", "credentials"),
        ("http://:pass@host/", "credentials"),
        ("http://host/#top", "fragment"),
        ("http://host/#", "fragment"),
        ("http://host/\r\nX: y", "control"),
        ("http://ho\tst/", "control"),
        ("http://host/a b", "blanks"),
        ("http://host:99999/", "not valid"),
        ("http://[::1", "not valid"),
    ],
)
def test_refused_urls(url, message):
    with pytest.raises(InvalidArgument, match=message):
        check_endpoint(url, {}, 60)


@pytest.mark.parametrize("name", ["Authorization", "X-Api-Key", "x-fc-region", "Cookie"])
def test_accepted_headers(name):
    check_endpoint("http://host/", {name: "Bearer abc ~!"}, 60)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "naïve", "a\n"])
def test_refused_header_names(name):
    with pytest.raises(InvalidArgument, match="header name"):
        check_endpoint("http://host/", {name: "v"}, 60)


@pytest.mark.parametrize(
    "name", ["Host", "content-length", "Transfer-Encoding", "TE", "Idempotency-Key", "X-Fc-Request-Id", "Webhook-Id"]
)
def test_headers_of_the_server(name):
    with pytest.raises(InvalidArgument, match="set by the server"):
        check_endpoint("http://host/", {name: "v"}, 60)


@pytest.mark.parametrize("value", ["s3cret\r\nX: y", "s3cret\n", "s3cret\x00", "s3crét"])
def test_refused_header_values_are_not_repeated(value):
    with pytest.raises(InvalidArgument, match="printable") as refusal:
        check_endpoint("http://host/", {"X-Key": value}, 60)
    assert "s3cr" not in str(refusal.value)


@pytest.mark.parametrize("seconds", [0, -1, 86_401])
def test_refused_timeouts(seconds):
    with pytest.raises(InvalidArgument, match="timeoutSeconds"):
        check_endpoint("http://host/", {}, seconds)


@pytest.mark.parametrize("seconds", [1, 86_400])
def test_accepted_timeouts(seconds):
    check_endpoint("http://host/", {}, seconds)


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        (("ftp://host/", None, None), "initializeUrl must begin"),
        ((None, "http://user@host/", None), "preStopUrl must not carry credentials"),
        ((None, "http://0.0.0.0/", None), "preStopUrl is refused"),
        ((None, None, 0), "hookSeconds must be 1 to 90"),
        ((None, None, 91), "hookSeconds must be 1 to 90"),
    ],
)
def test_refused_hooks(hooks, message):
    with pytest.raises(InvalidArgument, match=message):
        check_hooks(*hooks)


def test_accepted_hooks():
    check_hooks(None, None, None)
    check_hooks("http://host/initialize", "https://host/pre-stop?x=1", 90)


def test_no_registered_header_can_stand_beside_one_of_the_call(invocation):
    call = invocation(qualifier="prod", invocation_id="task-1", wants_log=True, traceparent="00-1-2-01")
    lines = write_request(lasting_head(URL("http://host/"), {}), call).decode().split("\r\n")[1:-2]
    sent = {line.split(":")[0].lower() for line in lines}
    assert sent - {"host", "content-length", "user-agent", "accept"} == CALL_HEADERS


def test_headers_stay_out_of_logs():
    assert "s3cret" not in repr(Endpoint("http://host/", {"Authorization": "s3cret"}, 60))
