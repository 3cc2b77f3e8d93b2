"""Signatures of real clients are accepted; a change of any signed part is detected."""

import time
from dataclasses import replace

import pytest

from flowserver.api.mns.faults import (
    InvalidAuthorizationHeader,
    InvalidDateHeader,
    InvalidDigest,
    MissingAuthorizationHeader,
    MissingDateHeader,
)
from flowserver.api.mns.signature import SignedRequest, check_digest, read_claim, verify
from flowserver.base.errors import RequestTimeTooSkewed, SignatureNotMatch
from tests.api.mns.recorded_requests import RECORDED_NAMES, recorded_request
from tests.support.access_key import ACCESS_KEY_ID, SECRET

QUARTER_MS = 15 * 60 * 1000


def check(request: SignedRequest, *, secret: str = SECRET, late_ms: int = 0) -> None:
    claim = read_claim(request.headers)
    assert claim.access_key_id == ACCESS_KEY_ID
    verify(request, claim, secret, claim.signed_at_ms + late_ms)


@pytest.fixture(params=RECORDED_NAMES)
def request_(request: pytest.FixtureRequest) -> SignedRequest:
    """Each recording in turn."""
    return recorded_request(request.param)


def test_recordings_are_accepted_within_a_quarter_of_an_hour(request_: SignedRequest) -> None:
    check(request_)
    check(request_, late_ms=QUARTER_MS)
    check(request_, late_ms=-QUARTER_MS)
    for late_ms in (QUARTER_MS + 1, -QUARTER_MS - 1):
        with pytest.raises(RequestTimeTooSkewed):
            check(request_, late_ms=late_ms)


def test_nothing_signed_can_be_changed(request_: SignedRequest) -> None:
    changes = [
        replace(request_, method="PATCH"),
        replace(request_, resource=request_.resource + "?x=1"),
        *(
            replace(request_, headers={**request_.headers, name: "Sat, 01 Jan 2000 00:00:00 GMT"})
            for name in ("date", "x-mns-version", "x-mns-other", "content-md5", "content-type")
        ),
    ]
    for changed in changes:
        with pytest.raises(SignatureNotMatch):
            claim = read_claim(request_.headers)
            verify(changed, claim, SECRET, claim.signed_at_ms)
    with pytest.raises(SignatureNotMatch):
        check(request_, secret="other")


def test_a_body_must_be_the_signed_body() -> None:
    request = recorded_request("python-SendMessage")
    with pytest.raises(InvalidDigest):
        check(replace(request, body=request.body + b" "))


@pytest.mark.parametrize("digest", ["XrY7u+Ae7tCTyyK7j1rNww==", "NWViNjNiYmJlMDFlZWVkMDkzY2IyMmJiOGY1YWNkYzM="])
def test_a_digest_may_be_of_bytes_or_of_their_text(digest: str) -> None:
    check_digest(SignedRequest("POST", "/", {"content-md5": digest}, b"hello world"))
    for wrong in (digest[1:], "!", "ü", "aGVsbG8="):
        with pytest.raises(InvalidDigest):
            check_digest(SignedRequest("POST", "/", {"content-md5": wrong}, b"hello world"))


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({}, MissingAuthorizationHeader),
        ({"authorization": "MNS"}, InvalidAuthorizationHeader),
        ({"authorization": "MNS id"}, InvalidAuthorizationHeader),
        ({"authorization": "MNS :sig"}, InvalidAuthorizationHeader),
        ({"authorization": "FC id:sig"}, InvalidAuthorizationHeader),
        ({"authorization": "MNS id:sig"}, MissingDateHeader),
        ({"authorization": "MNS id:sig", "date": "yesterday"}, InvalidDateHeader),
        ({"authorization": "MNS id:sig", "date": "Sat, 32 Nov 2026 07:36:28 GMT"}, InvalidDateHeader),
        ({"authorization": "MNS id:sig", "date": "Sat, 21 Nov 2026 07:36:28 -0000"}, InvalidDateHeader),
        ({"authorization": "MNS id:sig", "date": "Sat, 21 Nov 2026 07:36:28"}, InvalidDateHeader),
        ({"authorization": "MNS id:sig", "date": f"Sat, 21 Nov {10**20} 07:36:28 GMT"}, InvalidDateHeader),
    ],
)
def test_missing_or_misspelt_parts_are_named(headers: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        read_claim(headers)


def test_the_services_own_date_header_comes_first() -> None:
    headers = {"authorization": "MNS id:sig", "date": "nonsense", "x-mns-date": "Sat, 21 Nov 2026 07:36:28 GMT"}
    assert read_claim(headers).signed_at_ms == 1_795_246_588_000


@pytest.mark.parametrize("zone", ["GMT", "+0000", "+0100"])
def test_a_date_must_be_in_gmt(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        hour = "08" if zone == "+0100" else "07"
        claim = read_claim({"authorization": "MNS id:sig", "date": f"Sat, 21 Nov 2026 {hour}:36:28 {zone}"})
    finally:
        monkeypatch.undo()
        time.tzset()
    assert claim.signed_at_ms == 1_795_246_588_000
