"""A server without keys serves this machine's programs, not web pages of other sites and not the network."""

import pytest

from flowserver.api.keyless_access import UnsafeBind, check_bind, check_open_request
from flowserver.base.errors import AccessDenied

LOCAL = "127.0.0.1:8080"


class TestHost:
    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "localhost:8080",
            "LocalHost:80",
            "localhost.",
            "flows.localhost:8080",
            "127.0.0.1",
            "127.0.0.1:65535",
            "127.8.9.10:1",
            "[::1]",
            "[::1]:8080",
            "[0:0:0:0:0:0:0:1]:8080",
            "http://127.0.0.1:18802",
            "http://127.0.0.1:18802/",
            "HTTP://localhost:18802",
            "cn-hangzhou.fnf.aliyuncs.com",
            "cn-hangzhou-internal.fnf.aliyuncs.com:80",
            "1234567890.cn-shanghai.fnf.aliyuncs.com",
        ],
    )
    def test_local_and_service_names_are_answered(self, host: str) -> None:
        check_open_request(host, None, ())

    @pytest.mark.parametrize(
        "host",
        [
            None,
            "",
            ":8080",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "evil.example@127.0.0.1",
            "http://evil.example/127.0.0.1",
            "http://127.0.0.1:18802/path",
            "http://http://127.0.0.1",
            "ftp://127.0.0.1",
            "127.0.0.1:8080:8080",
            "127.0.0.1:port",
            "127.0.0.1 ",
            "127.0.0.1\n",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "128.0.0.1",
            "0.0.0.0:8080",
            "10.0.0.1",
            "169.254.169.254",
            "::1",
            "[::]",
            "[::2]:8080",
            "[::ffff:127.0.0.1]",
            "[fe80::1]",
            "fnf.aliyuncs.com.evil.example",
            "evilfnf.aliyuncs.com",
            "cn-hangzhou.ecs.aliyuncs.com",
            "localhost,evil.example",
            "lоcalhost",  # with a Cyrillic letter
        ],
    )
    def test_others_are_refused(self, host: str | None) -> None:
        with pytest.raises(AccessDenied, match="Host"):
            check_open_request(host, None, ())

    def test_configured_names_are_answered(self) -> None:
        allowed = ("flows.example", "*.Internal.example")
        for host in ("flows.example:8080", "FLOWS.example", "a.internal.example", "a.b.internal.example"):
            check_open_request(host, None, allowed)
        for host in ("a.flows.example", "internal.example", "example"):
            with pytest.raises(AccessDenied):
                check_open_request(host, None, allowed)


class TestOrigin:
    @pytest.mark.parametrize(
        "origin",
        [None, "http://localhost:8080", "http://127.0.0.1:3000", "https://[::1]", "http://flows.localhost"],
    )
    def test_no_origin_or_a_local_origin_is_answered(self, origin: str | None) -> None:
        check_open_request(LOCAL, origin, ())

    @pytest.mark.parametrize(
        "origin",
        [
            "",
            "null",
            "localhost",
            "127.0.0.1:8080",
            "http://evil.example",
            "https://localhost.evil.example",
            "http://localhost@evil.example",
            "file://",
            "file://localhost",
            "chrome-extension://localhost",
            "http://cn-hangzhou.fnf.aliyuncs.com",
            "http://localhost http://evil.example",
        ],
    )
    def test_others_are_refused(self, origin: str) -> None:
        with pytest.raises(AccessDenied, match="Origin"):
            check_open_request(LOCAL, origin, ())

    def test_the_configured_origin_is_answered(self) -> None:
        check_open_request(LOCAL, "https://flows.example", ("flows.example",))


class TestFetchSite:
    @pytest.mark.parametrize("site", [None, "none", "same-origin", "same-site"])
    def test_a_local_page_or_the_address_bar_is_answered(self, site: str | None) -> None:
        check_open_request(LOCAL, None, (), site)

    @pytest.mark.parametrize("site", ["cross-site", "Cross-Site", " cross-site"])
    def test_a_page_of_another_site_is_refused(self, site: str) -> None:
        with pytest.raises(AccessDenied, match="Sec-Fetch-Site"):
            check_open_request(LOCAL, None, (), site)


def test_a_refusal_repeats_little_of_the_request() -> None:
    with pytest.raises(AccessDenied) as refused:
        check_open_request("x" * 60_000, None, ())
    assert len(refused.value.message) < 400


class TestBind:
    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
    def test_loopback_needs_no_key(self, host: str) -> None:
        check_bind(host, has_keys=False)

    @pytest.mark.parametrize("host", ["", "0.0.0.0", "0", "::", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1"])
    def test_other_addresses_need_a_key(self, host: str) -> None:
        with pytest.raises(UnsafeBind, match="flowserver keys create"):
            check_bind(host, has_keys=False)
        check_bind(host, has_keys=True)

    @pytest.mark.parametrize(
        ("addresses", "safe"),
        [
            (["127.0.0.1", "::1"], True),
            (["127.0.0.1", "192.0.2.1"], False),
            (["fe80::1%eth0"], False),
            ([], False),
        ],
    )
    def test_a_name_must_be_loopback_in_every_address(self, addresses: list[str], safe: bool) -> None:
        if safe:
            check_bind("name", has_keys=False, resolve=lambda _: addresses)
        else:
            with pytest.raises(UnsafeBind):
                check_bind("name", has_keys=False, resolve=lambda _: addresses)

    def test_an_unknown_name_is_refused_with_an_explanation(self) -> None:
        def resolve(host: str) -> list[str]:
            raise OSError(-2, "Name or service not known")

        with pytest.raises(UnsafeBind, match="'nowhere': Name or service not known"):
            check_bind("nowhere", has_keys=False, resolve=resolve)

    @pytest.mark.parametrize("host", ["a..b", "x" * 64, "\ud800"])
    def test_an_invalid_name_is_refused_with_an_explanation(self, host: str) -> None:
        with pytest.raises(UnsafeBind, match="not a host name"):
            check_bind(host, has_keys=False)
