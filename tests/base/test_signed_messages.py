"""Signatures by Standard Webhooks, compared with the library that its makers publish."""

import base64
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from flowserver.base.signed_messages import SignatureWrong, Signer, SigningSecretsInvalid, read_signer, signer_of

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(range(64))).decode()
BODY = json.dumps({"名": "é"}).encode()
NOW = 1_700_000_000

# From the specification, "Signature scheme" and the tests of its libraries.
PUBLISHED = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_published_example():
    headers = signer_of(PUBLISHED).headers_of("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1614265330)
    assert headers["Webhook-Signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", [SECRET, OTHER])
@pytest.mark.parametrize("body", [b"", b"{}", BODY])
def test_either_side_takes_the_others_signature(secret, body):
    ours = signer_of(secret)
    Webhook(secret).verify(body or b"0", ours.headers_of("call-1", body or b"0"))  # which reads JSON, too
    now = datetime.now(UTC)
    theirs = Webhook(secret).sign("call-1", now, body.decode())
    given = {"webhook-id": "call-1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": theirs}
    ours.check({name.title(): value for name, value in given.items()}, body)


def test_a_secret_is_replaced_without_a_pause():
    """First the sender has both, then the receiver the new one, then the sender too."""
    both = signer_of(f"# old\n{SECRET}\n\n# new\n{OTHER}\n")
    for receiver in (SECRET, OTHER):
        Webhook(receiver).verify(BODY, both.headers_of("call-1", BODY))
        signer_of(receiver).check(both.headers_of("call-1", BODY), BODY)
    for sender in (SECRET, OTHER):
        both.check(signer_of(sender).headers_of("call-1", BODY), BODY)
    with pytest.raises(SignatureWrong, match="not signed with a secret"):
        signer_of(OTHER).check(signer_of(SECRET).headers_of("call-1", BODY), BODY)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"Webhook-Id": "call-2"}, "not signed with a secret"),
        ({"Webhook-Timestamp": str(NOW + 1)}, "not signed with a secret"),
        ({"Webhook-Signature": "v1,"}, "not signed with a secret"),
        ({"Webhook-Signature": "v1,!"}, "not signed with a secret"),
        ({"Webhook-Signature": "v1,é"}, "not signed with a secret"),
        ({"Webhook-Signature": "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}, "not signed with a secret"),
        ({"Webhook-Signature": ""}, "a header Webhook-Id, -Timestamp or -Signature is missing"),
        ({"Webhook-Id": ""}, "is missing"),
        ({"Webhook-Timestamp": ""}, "is missing"),
    ],
)
def test_what_was_changed_is_refused(change, why):
    signer = signer_of(SECRET)
    headers = signer.headers_of("call-1", BODY, NOW)
    signer.check(headers, BODY, NOW)
    with pytest.raises(SignatureWrong, match=why):
        signer.check(headers | change, BODY, NOW)
    with pytest.raises(SignatureWrong, match="not signed with a secret"):
        signer.check(headers, BODY + b" ", NOW)


@pytest.mark.parametrize(("seconds", "is_good"), [(300, True), (-300, True), (301, False), (-301, False)])
def test_a_recording_is_good_for_five_minutes(seconds, is_good):
    signer = signer_of(SECRET)
    headers = signer.headers_of("call-1", BODY, NOW)
    if is_good:
        signer.check(headers, BODY, NOW + seconds)
    else:
        with pytest.raises(SignatureWrong, match="compare both clocks"):
            signer.check(headers, BODY, NOW + seconds)


@pytest.mark.parametrize("timestamp", ["-1", "1e9", "9" * 400, "²"])
def test_times_that_are_none(timestamp):
    """They are signed, so their sender has the secret; it fails all the same, and with the usual answer."""
    signer = signer_of(SECRET)
    digest = signer._digests("call-1", timestamp, BODY)[0]
    headers = {"Webhook-Id": "call-1", "Webhook-Timestamp": timestamp}
    headers["Webhook-Signature"] = f"v1,{base64.b64encode(digest).decode()}"
    with pytest.raises(SignatureWrong, match="compare both clocks"):
        signer.check(headers, BODY, NOW)


def test_one_message_is_not_read_as_another():
    headers = signer_of(SECRET).headers_of("call.1", BODY)
    assert headers["Webhook-Id"] == "call_1"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY, headers | {"Webhook-Id": "call.1"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "1 to 8 secrets"),
        ("# none\n", "1 to 8 secrets"),
        (f"{SECRET}\n" * 9, "1 to 8 secrets"),
        (f"{SECRET}\nwhsec_c2hvcnQ=\n", "line 2: a secret is whsec_ and the base64 form of 24 to 64 bytes"),
        (SECRET.removeprefix("whsec_"), "line 1"),
        ("whsec_" + "!" * 44, "line 1"),
        ("whsec_" + base64.b64encode(bytes(65)).decode(), "line 1"),
    ],
)
def test_secrets_that_are_none_are_not_shown(tmp_path, text, why):
    file = tmp_path / "secrets"
    file.write_text(text)
    with pytest.raises(SigningSecretsInvalid, match=why) as raised:
        read_signer(file)
    assert str(file) in str(raised.value)
    assert "c2hv" not in str(raised.value)
    assert SECRET[6:] not in repr(signer_of(SECRET))


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, why in (("none", "No such file"), (".", "Is a directory"), ("bytes", "not UTF-8 text")):
        with pytest.raises(SigningSecretsInvalid, match=why):
            read_signer(tmp_path / name)


def test_a_signer_without_secrets_signs_nothing_that_is_good():
    with pytest.raises(SignatureWrong):
        Signer(()).check(signer_of(SECRET).headers_of("call-1", BODY), BODY)
