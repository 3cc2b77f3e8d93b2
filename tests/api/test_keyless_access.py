"""A server without keys serves this machine's programs, not web pages of other sites and not the network."""

import pytest

from flowserver.api.keyless_access import UnsafeBind, check_bind, check_open_request, refusal_of_stranger
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
            "[::ffff:127.0.0.1]:8080",
            "[::ffff:7f00:1]",
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
            "[::ffff:10.0.0.1]",
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


class TestStranger:
    HOST = (b"host", LOCAL.encode())

    @pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
    def test_a_connection_from_this_machine_is_answered(self, peer: str) -> None:
        assert refusal_of_stranger({"client": (peer, 1), "headers": [self.HOST]}, ()) is None

    @pytest.mark.parametrize("peer", ["10.0.0.5", "::", "fe80::1%eth0", "::ffff:10.0.0.5", "localhost", ""])
    def test_one_from_elsewhere_is_refused(self, peer: str) -> None:
        """A machine beside this one may reach a loopback address, if the kernel routes it (CVE-2020-8558)."""
        refusal = refusal_of_stranger({"client": (peer, 1), "headers": [self.HOST]}, ())
        assert refusal is not None
        assert f"The connection comes from {peer}" in refusal.message

    def test_one_from_nowhere_is_refused(self) -> None:
        assert refusal_of_stranger({"client": None, "headers": [self.HOST]}, ()) is not None

    @pytest.mark.parametrize(
        "headers",
        [
            [],
            [HOST, HOST],
            [HOST, (b"host", b"evil.example")],
            [(b"host", b"evil.example"), HOST],
            [HOST, (b"via", b"")],
            [(b"x-forwarded-anything", b""), HOST],
            [HOST, (b"x-forwarded-" + b"x" * 60_000, b"")],
        ],
    )
    def test_other_hosts_and_what_proxies_add_are_refused(self, headers: list[tuple[bytes, bytes]]) -> None:
        refusal = refusal_of_stranger({"client": ("127.0.0.1", 1), "headers": headers}, ("flows.example",))
        assert refusal is not None
        assert len(refusal.message) < 400

    @pytest.mark.parametrize("name", [b"x-forward", b"x-real", b"viable", b"x-acs-via", b"forwarded-by-me"])
    def test_other_headers_are_answered(self, name: bytes) -> None:
        headers = [(name, b"x"), (b"host", b"flows.example")]
        assert refusal_of_stranger({"client": ("127.0.0.1", 1), "headers": headers}, ("flows.example",)) is None


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
