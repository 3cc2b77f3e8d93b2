"""Signatures of the real SDKs are accepted, all others refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from flowserver.api.rpc.signature import (
    TIME_WINDOW_MS,
    V3_REQUIRED,
    Claim,
    SignedRequest,
    read_claim,
    verify,
)
from flowserver.api.rpc.signed_texts import v1_signature, v1_string_to_sign
from flowserver.base.clock import parse_instant
from flowserver.base.errors import InvalidArgument, MissingParameter, RequestTimeTooSkewed, SignatureNotMatch
from tests.support.recorded_requests import ACCESS_KEY_ID, RECORDED_NAMES, SECRET, recorded_request

V3_NAMES = [name for name in RECORDED_NAMES if "-v3-" in name]
V1_NAMES = [name for name in RECORDED_NAMES if name not in V3_NAMES]

V1 = recorded_request("classic-StartExecution")
V3 = recorded_request("tea-v3-StartExecution")

NOW = parse_instant("2026-11-21T07:34:25Z")


def claim_of(request: SignedRequest) -> Claim:
    claim = read_claim(request)
    assert claim is not None
    return claim


def check(request: SignedRequest, secret: str = SECRET, late_ms: int = 0) -> None:
    """Read and verify a request at the instant of its signature, or later."""
    claim = claim_of(request)
    verify(request, claim, secret, claim.timestamp_ms + late_ms)


def signed_v1(changes: dict[str, str], method: str = "GET") -> SignedRequest:
    """A request with the parameters of the recorded one, changed and signed again."""
    parameters = {**V1.parameters, **changes}
    parameters["Signature"] = v1_signature(SECRET, v1_string_to_sign(method, parameters))
    return SignedRequest(method, "/", list(parameters.items()), [], {}, b"")


def with_query(request: SignedRequest, **changes: str) -> SignedRequest:
    return replace(request, query=list({**dict(request.query), **changes}.items()))


def without(request: SignedRequest, name: str) -> SignedRequest:
    return replace(
        request,
        query=[pair for pair in request.query if pair[0] != name],
        form=[pair for pair in request.form if pair[0] != name],
        headers={header: value for header, value in request.headers.items() if header != name},
    )


def with_headers(request: SignedRequest, **changes: str) -> SignedRequest:
    return replace(
        request,
        headers={**request.headers, **{name.replace("_", "-"): value for name, value in changes.items()}},
    )


def with_authorization(change: Callable[[str], str]) -> SignedRequest:
    return with_headers(V3, authorization=change(V3.headers["authorization"]))


class TestRecordedRequests:
    @pytest.mark.parametrize("name", RECORDED_NAMES)
    def test_are_accepted(self, name: str) -> None:
        check(recorded_request(name))

    @pytest.mark.parametrize("name", RECORDED_NAMES)
    def test_are_refused_with_another_secret(self, name: str) -> None:
        with pytest.raises(SignatureNotMatch):
            check(recorded_request(name), secret="testsecreT")

    @pytest.mark.parametrize("name", RECORDED_NAMES)
    def test_name_their_key(self, name: str) -> None:
        claim = claim_of(recorded_request(name))
        assert claim.access_key_id == ACCESS_KEY_ID
        assert len(claim.nonce) == 32
        assert claim.version == ("v3" if name in V3_NAMES else "v1")

    @pytest.mark.parametrize("name", RECORDED_NAMES)
    def test_are_refused_with_another_method(self, name: str) -> None:
        with pytest.raises(SignatureNotMatch):
            check(replace(recorded_request(name), method="PUT"))

    @pytest.mark.parametrize("name", V1_NAMES)
    def test_v1_covers_every_parameter(self, name: str) -> None:
        request = recorded_request(name)
        for changed in request.parameters.keys() - {"SignatureMethod", "SignatureVersion", "SignatureType"}:
            other = "2026-11-21T07:34:26Z" if changed == "Timestamp" else "other"
            with pytest.raises(SignatureNotMatch):
                check(replace(request, form=[*request.form, (changed, other)]))

    @pytest.mark.parametrize("name", V3_NAMES)
    def test_v3_covers_body_query_and_path(self, name: str) -> None:
        request = recorded_request(name)
        for changed in (
            replace(request, body=request.body + b"&"),
            replace(request, query=[*request.query, ("Limit", "1")]),
            replace(request, path="/other"),
        ):
            with pytest.raises(SignatureNotMatch):
                check(changed)

    @pytest.mark.parametrize("name", V3_NAMES)
    def test_v3_covers_every_signed_header(self, name: str) -> None:
        request = recorded_request(name)
        signed = request.headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
        for header in signed:
            other = "2026-11-21T07:34:26Z" if header == "x-acs-date" else "other"
            with pytest.raises(SignatureNotMatch):
                check(replace(request, headers={**request.headers, header: other}))
            with pytest.raises((SignatureNotMatch, MissingParameter)):
                check(without(request, header))


class TestWhatIsSigned:
    def test_the_text_of_v1(self) -> None:
        text = v1_string_to_sign("POST", V1.parameters)
        assert text.startswith("POST&%2F&AccessKeyId%3Dtestak%26Action%3DStartExecution%26ExecutionName%3De1%26")
        assert "%26Input%3D%257B%2522k%2522%253A%2522v%25201%2522%257D%26" in text
        assert "%26SignatureType%3D%26SignatureVersion%3D1.0%26Timestamp%3D2026-11-21T07%253A34%253A25Z%26" in text
        assert v1_signature(SECRET, text) == "Ym1L36GIUp/eBFZ9zSMbOoTF+Q8="

    def test_the_form_wins_and_the_last_of_equal_names(self) -> None:
        request = replace(V1, query=[("a", "1"), ("a", "2"), ("b", "3")], form=[("b", "4"), ("b", "")])
        assert request.parameters == {"a": "2", "b": ""}

    def test_an_overridden_parameter_is_ignored(self) -> None:
        check(replace(V1, query=[("FlowName", "other"), *V1.query]))

    def test_a_host_that_looks_like_a_url_is_signed_as_received(self) -> None:
        with pytest.raises(SignatureNotMatch):
            check(with_headers(V3, host="http://127.0.0.1:18804"))

    def test_spaces_around_the_parts_of_the_authorization(self) -> None:
        check(with_authorization(lambda text: text.replace(",", " , ")))

    def test_spaces_around_header_values(self) -> None:
        check(with_headers(V3, accept=" application/json "))

    def test_headers_that_are_not_signed(self) -> None:
        check(with_headers(V3, x_forwarded_for="127.0.0.1"))

    def test_the_order_of_one_names_values_is_signed(self) -> None:
        request = recorded_request("tea-v3-GetExecutionHistory")
        with pytest.raises(SignatureNotMatch):
            check(replace(request, query=[*request.query, ("Limit", "10")]))


class TestTime:
    @pytest.mark.parametrize("request_", [V1, V3], ids=["v1", "v3"])
    @pytest.mark.parametrize("late_ms", [TIME_WINDOW_MS, -TIME_WINDOW_MS])
    def test_fifteen_minutes_are_accepted(self, request_: SignedRequest, late_ms: int) -> None:
        check(request_, late_ms=late_ms)

    @pytest.mark.parametrize("request_", [V1, V3], ids=["v1", "v3"])
    @pytest.mark.parametrize("late_ms", [TIME_WINDOW_MS + 1, -TIME_WINDOW_MS - 1])
    def test_more_is_refused(self, request_: SignedRequest, late_ms: int) -> None:
        with pytest.raises(RequestTimeTooSkewed):
            check(request_, late_ms=late_ms)

    def test_a_wrong_signature_does_not_learn_the_time(self) -> None:
        with pytest.raises(SignatureNotMatch):
            check(V1, secret="wrong", late_ms=2 * TIME_WINDOW_MS)

    @pytest.mark.parametrize("timestamp", ["yesterday", "2026-11-21", "2026-11-21T07:34:25", "1795246465", "\ud800"])
    def test_a_time_must_be_valid(self, timestamp: str) -> None:
        with pytest.raises(InvalidArgument):
            read_claim(with_query(V1, Timestamp=timestamp))
        with pytest.raises(InvalidArgument):
            read_claim(with_headers(V3, x_acs_date=timestamp))

    def test_the_time_is_read(self) -> None:
        assert claim_of(V1).timestamp_ms == NOW


class TestHalfSigned:
    def test_a_bare_request_is_unsigned(self) -> None:
        assert read_claim(SignedRequest("GET", "/", [("Action", "ListFlows")], [], {}, b"")) is None

    def test_an_anonymous_sdk_call_is_unsigned(self) -> None:
        anonymous = {"Action": "ListFlows", "Timestamp": "2026-11-21T07:34:25Z", "SignatureNonce": "n"}
        assert read_claim(SignedRequest("GET", "/", list(anonymous.items()), [], {}, b"")) is None
        assert read_claim(without(V3, "authorization")) is None

    def test_a_bearer_token_is_not_a_signature(self) -> None:
        assert read_claim(with_headers(V3, authorization="Bearer secret")) is None

    @pytest.mark.parametrize("name", ["AccessKeyId", "Signature", "SignatureNonce", "Timestamp", "Action"])
    def test_v1_needs_all_of_its_parts(self, name: str) -> None:
        for request in (without(V1, name), with_query(V1, **{name: ""})):
            with pytest.raises(MissingParameter, match=name):
                read_claim(request)

    @pytest.mark.parametrize("name", ["x-acs-date", "x-acs-signature-nonce"])
    def test_v3_needs_its_headers(self, name: str) -> None:
        with pytest.raises(MissingParameter, match=name):
            read_claim(without(V3, name))

    @pytest.mark.parametrize("name", ["Credential", "SignedHeaders", "Signature"])
    def test_v3_needs_all_parts_of_the_authorization(self, name: str) -> None:
        for other in ("Other", "X" + name, name.lower()):
            with pytest.raises(MissingParameter, match=name):
                read_claim(with_authorization(lambda text, other=other: text.replace(name + "=", other + "=")))

    @pytest.mark.parametrize("name", sorted(V3_REQUIRED))
    def test_v3_must_sign_the_important_headers(self, name: str) -> None:
        with pytest.raises(SignatureNotMatch, match=name):
            check(with_authorization(lambda text: text.replace(f";{name}", "")))

    def test_v3_signed_headers_must_have_arrived(self) -> None:
        with pytest.raises(SignatureNotMatch, match="x-lost"):
            check(with_authorization(lambda text: text.replace(";host", ";host;x-lost")))

    def test_the_length_of_a_nonce_is_limited(self) -> None:
        check(signed_v1({"SignatureNonce": "n" * 128}))
        with pytest.raises(InvalidArgument):
            read_claim(signed_v1({"SignatureNonce": "n" * 129}))


def test_parameters_are_merged_once_for_each_request() -> None:
    assert V1.parameters is V1.parameters
    assert with_query(V1, More="1").parameters == {**V1.parameters, "More": "1"}
    both = SignedRequest("POST", "/", [("a", "query"), ("b", "1")], [("a", "form"), ("a", "last")], {}, b"")
    assert both.parameters == {"a": "last", "b": "1"}


class TestOtherAlgorithms:
    @pytest.mark.parametrize(
        "changes",
        [
            {"SignatureMethod": "HMAC-SHA256"},
            {"SignatureMethod": "SHA256withRSA", "SignatureType": "PRIVATEKEY"},
            {"SignatureType": "BEARERTOKEN", "BearerToken": "t"},
            {"SignatureVersion": "2.0"},
        ],
    )
    def test_of_rpc(self, changes: dict[str, str]) -> None:
        with pytest.raises(InvalidArgument):
            read_claim(with_query(V1, **changes))

    def test_a_bearer_token_without_a_key(self) -> None:
        query = [("Action", "ListFlows"), ("BearerToken", "t"), ("SignatureType", "BEARERTOKEN")]
        with pytest.raises(InvalidArgument, match="SignatureType"):
            read_claim(SignedRequest("GET", "/", query, [], {}, b""))

    @pytest.mark.parametrize("algorithm", ["ACS3-HMAC-SM3", "ACS3-RSA-SHA256", "ACS4"])
    def test_of_v3(self, algorithm: str) -> None:
        with pytest.raises(InvalidArgument, match=algorithm):
            read_claim(with_authorization(lambda text: text.replace("ACS3-HMAC-SHA256", algorithm)))


class TestOddText:
    @pytest.mark.parametrize("signature", ["中", "\ud800", "é" * 28, " "])
    def test_signatures_that_are_not_ascii(self, signature: str) -> None:
        with pytest.raises(SignatureNotMatch):
            check(with_query(V1, Signature=signature))
        with pytest.raises(SignatureNotMatch):
            check(with_authorization(lambda text: text.replace("8ec91c4b", signature.strip())))

    @pytest.mark.parametrize("changes", [{"Input": "~*+/&=中\n %"}, {"中": "文"}, {"a b": "\ud800"}, {"Input": ""}])
    def test_parameters_of_any_characters(self, changes: dict[str, Any]) -> None:
        check(signed_v1(changes))

    def test_a_surrogate_in_the_query_of_v3(self) -> None:
        with pytest.raises(SignatureNotMatch):
            check(replace(V3, query=[("\ud800", "\ud800")], path="/\ud800"))


class TestTheMessage:
    def test_it_shows_the_servers_string_to_sign_after_the_first_colon(self) -> None:
        with pytest.raises(SignatureNotMatch) as refused:
            check(V1, secret="wrong")
        _, _, shown = refused.value.message.partition(":")
        assert shown == v1_string_to_sign("POST", V1.parameters)

    def test_it_does_not_repeat_a_long_request(self) -> None:
        with pytest.raises(SignatureNotMatch) as refused:
            check(signed_v1({"Input": "x" * 10_000}), secret="wrong")
        assert len(refused.value.message) < 100
