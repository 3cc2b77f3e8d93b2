"""Signatures of the real SDKs are accepted, all others refused."""

import pytest

from flowserver.api.fc.signature import TIME_WINDOW_MS, Claim, read_claim, sign, string_to_sign, verify
from flowserver.base.clock import parse_instant
from flowserver.base.errors import InvalidArgument, MissingParameter, RequestTimeTooSkewed, SignatureNotMatch

PATH = "/2016-08-15/services/s/functions/echo/invocations"
PYTHON = {
    "date": "Sat, 21 Nov 2026 07:37:34 GMT",
    "content-type": "application/json",
    "x-fc-invocation-type": "Async",
    "x-fc-stateful-async-invocation-id": "task-1",
    "authorization": "FC testak:yRfnAmIsaGzS6SNNnm3BVgXl454tgrIJOkijgjh+Gys=",
}
"""Sent by aliyun-fc2 2.5.2."""
NODE = {
    "accept": "application/json",
    "date": "Sat, 21 Nov 2026 07:38:02 GMT",
    "x-fc-account-id": "123456",
    "x-fc-invocation-type": "Async",
    "x-fc-stateful-async-invocation-id": "t1",
    "content-type": "application/octet-stream",
    "content-md5": "OWRkNGU0NjEyNjhjODAzNGY1Yzg1NjRlMTU1YzY3YTY=",
    "authorization": "FC testak:mhoFRfT1NRwHmTh1qAcgmzjN9Za645rIhKmo8B0y/4g=",
}
"""Sent by @alicloud/fc2 2.6.6."""
NOW = parse_instant("2026-11-21T07:37:40Z")


def check(headers: dict[str, str], *, method: str = "POST", path: str = PATH, secret: str = "testsecret") -> None:
    verify(read_claim(headers), method, path, headers, secret, NOW)


@pytest.mark.parametrize("headers", [PYTHON, NODE])
def test_recorded_requests_are_accepted(headers: dict[str, str]) -> None:
    assert read_claim(headers).access_key_id == "testak"
    check(headers)


def test_the_string_to_sign_is_the_documented_one() -> None:
    assert string_to_sign("POST", PATH, PYTHON) == (
        "POST\n\napplication/json\nSat, 21 Nov 2026 07:37:34 GMT\n"
        "x-fc-invocation-type:Async\nx-fc-stateful-async-invocation-id:task-1\n" + PATH
    )


@pytest.mark.parametrize("headers", [PYTHON, NODE])
@pytest.mark.parametrize(
    "change",
    [
        {"x-fc-invocation-type": "Sync"},
        {"x-fc-log-type": "Tail"},
        {"content-type": "text/plain"},
        {"content-md5": "x"},
        {"date": "Sat, 21 Nov 2026 07:37:35 GMT"},
        {"authorization": "FC testak:\udcff"},
        {"authorization": "FC testak:"},
    ],
)
def test_a_changed_header_is_detected(headers: dict[str, str], change: dict[str, str]) -> None:
    with pytest.raises(SignatureNotMatch):
        check(headers | change)


def test_method_path_and_secret_are_signed() -> None:
    with pytest.raises(SignatureNotMatch):
        check(PYTHON, method="PUT")
    with pytest.raises(SignatureNotMatch):
        check(PYTHON, path=PATH.replace("echo", "other"))
    with pytest.raises(SignatureNotMatch):
        check(PYTHON, secret="other")


@pytest.mark.parametrize("authorization", ["testak:x", "MNS testak:x", "FC testak", "fc testak:x"])
def test_other_schemes_are_refused(authorization: str) -> None:
    with pytest.raises(InvalidArgument):
        read_claim({"authorization": authorization})


@pytest.mark.parametrize("headers", [{}, {"authorization": ""}])
def test_an_unsigned_request_gets_that_reason(headers: dict[str, str]) -> None:
    with pytest.raises(MissingParameter, match="Authorization"):
        read_claim(headers)


@pytest.mark.parametrize(
    ("date", "error"),
    [
        ({}, MissingParameter),
        ({"date": "yesterday"}, InvalidArgument),
        ({"x-fc-date": "21 Nov"}, InvalidArgument),
        ({"date": f"Sat, 21 Nov {10**20} 07:37:40 GMT"}, InvalidArgument),
        ({"date": "Sat, 21 Nov 2026 07:37:40 +999999999999999999"}, InvalidArgument),
        ({"date": "Sat, 21 Nov 2026 07:37:40 -0000"}, InvalidArgument),
        ({"date": "Sat, 21 Nov 2026 07:37:40"}, InvalidArgument),
    ],
)
def test_a_date_is_needed(date: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        check_signed(date)


@pytest.mark.parametrize("name", ["date", "x-fc-date"])
def test_the_date_may_differ_by_a_quarter_of_an_hour(name: str) -> None:
    check_signed({name: "Sat, 21 Nov 2026 07:37:40 GMT"}, TIME_WINDOW_MS)
    check_signed({name: "Sat, 21 Nov 2026 07:37:40 GMT"}, -TIME_WINDOW_MS)
    for late_ms in (TIME_WINDOW_MS + 1, -TIME_WINDOW_MS - 1):
        with pytest.raises(RequestTimeTooSkewed):
            check_signed({name: "Sat, 21 Nov 2026 07:37:40 GMT"}, late_ms)


def check_signed(headers: dict[str, str], late_ms: int = 0) -> None:
    signature = sign("s", string_to_sign("GET", "/", headers))
    verify(Claim("k", signature), "GET", "/", headers, "s", NOW + late_ms)
