"""The meaning of a complete reply: one test per row of the error table, and replies that are not answers."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from flowserver.base.limits import Limits
from flowserver.invokers.calls import Failed, Invocation, Replied
from flowserver.invokers.error_names import ErrorName, error_of_status
from flowserver.invokers.replies import BODY_CHARACTERS_MAX, classify_reply

ERROR_HEADER = {"X-Fc-Error-Type": "UnhandledInvocationError"}
DOCUMENT = {"errorMessage": "no money", "errorType": "CardDeclined", "stackTrace": [['File "/code/index.py"']]}


@pytest.fixture
def classify(invocation):
    def call(status, headers, body, limits=Limits(), **changes):  # noqa: B008
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return classify_reply(invocation(**changes), status, CIMultiDict(headers), content, limits)

    return call


@pytest.mark.parametrize("status", [200, 201])
def test_object_is_the_output(classify, status):
    assert classify(status, {}, b' {"total": 3, "name": "\xe4\xb8\xad"}\n') == Replied({"total": 3, "name": "中"})


def test_a_byte_order_mark_is_skipped_and_another_encoding_named(classify):
    assert classify(200, {}, b'\xef\xbb\xbf{"a": 1}') == Replied({"a": 1})
    assert classify(500, {}, json.dumps(DOCUMENT).encode("utf-8-sig")).error == "CardDeclined"
    assert "encoded as UTF-16; write it as UTF-8" in classify(200, {}, "{}".encode("utf-16-le")).cause


def test_integers_keep_every_digit(classify):
    assert classify(200, {}, b'{"id": 9007199254740993123456789}') == Replied({"id": 9007199254740993123456789})


def test_x_fc_status_200_is_not_an_error(classify):
    assert classify(200, {"x-fc-status": "200"}, {"a": 1}) == Replied({"a": 1})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"plain text",
        b"[1]",
        b'"text"',
        b"null",
        b"3",
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": 1} x',
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b'{"a":' * 100_000,
        b'{"a":' + b"1" * 5000 + b"}",
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
    ],
)
def test_anything_but_an_object_is_invalid_local(classify, body):
    result = classify(200, {}, body)
    assert result.error == "FnF.InvalidLocal"
    assert "shop/charge" in result.cause


@pytest.mark.parametrize(
    "headers",
    [ERROR_HEADER, {"x-fc-error-type": "HandledInvocationError"}, {"X-FC-Status": "404"}, {"x-fc-status": " 404 "}],
)
@pytest.mark.parametrize("status", [200, 404, 500])
def test_marked_error_has_the_functions_own_error_name(classify, headers, status):
    result = classify(status, headers, DOCUMENT)
    assert result.error == "CardDeclined"
    assert json.loads(result.cause) == DOCUMENT


@pytest.mark.parametrize(
    "document",
    [
        {"errorMessage": "Process exited unexpectedly before completing request (duration: 3ms)"},
        {"errorMessage": "Function timed out after 3 seconds", "errorType": ""},
        {"errorMessage": "x", "errorType": 7},
        {"ErrorCode": "Weird"},
    ],
)
def test_marked_error_without_error_type_is_unknown(classify, document):
    result = classify(200, ERROR_HEADER, document)
    assert result.error == "FC.Unknown"
    assert json.loads(result.cause) == document


@pytest.mark.parametrize("body", [b"", b"boom", b"\xff", b"[]", b'{"errorType": "\\ud800"}'])
def test_marked_error_without_document_is_unknown(classify, body):
    assert classify(200, ERROR_HEADER, body) == Failed("FC.Unknown", "shop/charge failed without an error document.")


@pytest.mark.parametrize("status", [400, 404, 429, 500, 502, 503])
def test_plain_web_function_that_raises(classify, status):
    result = classify(status, {}, {"errorMessage": "m", "errorType": "KeyError"})
    assert (result.error, json.loads(result.cause)) == ("KeyError", {"errorMessage": "m", "errorType": "KeyError"})


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, "ServiceNotFound"), (429, "ResourceExhausted"), (412, "FunctionNotStarted"), (500, "InternalServerError")],
)
def test_refusal_of_the_platform(classify, status, code):
    document = {"ErrorCode": code, "ErrorMessage": "why {not}"}
    result = classify(status, {}, document)
    assert (result.error, json.loads(result.cause)) == (f"FC.{code}", document)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, "FC.ResourceExhausted"),
        (503, "FC.ResourceThrottled"),
        (500, "FC.InternalServerError"),
        (404, "FC.FunctionNotFound"),
        (400, "FC.InvalidArgument"),
        (403, "FC.InvalidArgument"),
        (499, "FC.InvalidArgument"),
        (302, "FC.InvalidArgument"),
        (501, "FC.ServerError"),
        (502, "FC.ServerError"),
        (504, "FC.ServerError"),
        (599, "FC.ServerError"),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>Bearer s3cret</html>", b'{"detail": "Not Found"}', b"\xff"])
def test_status_alone_decides_without_a_document(classify, status, error, body):
    result = classify(status, {}, body)
    assert result.error == error
    assert result.cause.startswith(f"shop/charge answered {status}")
    assert "s3cret" not in result.cause


def test_redirect_is_explained(classify):
    assert "redirects are not followed" in classify(307, {"Location": "http://elsewhere/"}, b"").cause


def test_accepted_is_not_an_answer(classify):
    assert classify(202, {}, b"").error == "FnF.InvalidLocal"


def test_error_and_cause_are_cut(classify):
    result = classify(200, ERROR_HEADER, {"errorType": "E" * 500, "errorMessage": "m" * 10_000})
    assert (result.error, len(result.cause)) == ("E" * 128, 4096)
    assert len(classify(400, {}, {"ErrorCode": "C" * 500}).error) == 128


@pytest.mark.parametrize(
    ("changes", "title"),
    [({"qualifier": "prod"}, "shop.prod/charge"), ({"service": ""}, "charge")],
)
def test_cause_names_the_function(classify, changes, title):
    assert classify(500, {}, b"", **changes).cause.startswith(f"{title} answered 500; ")


def test_the_cause_has_the_request_s_id_and_the_beginning_of_the_body(classify):
    own = classify(502, {"X-Fc-Request-Id": "theirs"}, b"printer offline\n").cause
    assert own == "shop/charge answered 502; X-Fc-Request-Id theirs: printer offline"
    sent = classify(502, {}, b"").cause
    assert re.fullmatch(r"shop/charge answered 502; X-Fc-Request-Id [0-9a-f-]{36}\.", sent)
    assert classify(200, {"X-Fc-Request-Id": "theirs"}, b"<html>").cause.endswith("; X-Fc-Request-Id theirs: <html>")


@pytest.mark.parametrize("body", [b"x" * 100_000, b"\xff\x00" * 50_000, "\u4e2d".encode() * 50_000])
def test_only_the_beginning_of_the_body_is_kept(classify, body):
    assert len(classify(500, {}, body).cause) < BODY_CHARACTERS_MAX + 100


def test_every_row_of_the_error_table_is_documented():
    assert all(row.when.endswith(".") for row in ErrorName)
    assert {error_of_status(status) for status in range(300, 600)} <= set(ErrorName)


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(list('aé中\ud800"\\{}')),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["errorType", "ErrorCode", "a"]), inner),
    max_leaves=5,
)
BODIES = st.binary() | JSON_LIKE.map(lambda value: json.dumps(value).encode())
HEADERS = st.dictionaries(
    st.sampled_from(["X-Fc-Error-Type", "x-fc-status", "Content-Type"]), st.sampled_from(["", "200", "404", "é"])
)


@given(st.integers(100, 999), HEADERS, BODIES)
def test_no_reply_can_break_the_reader(status, headers, body):
    call = Invocation("s", "", "f", "{}", None, "k", 0, 1000, "flow", "run", "step")
    result = classify_reply(call, status, CIMultiDict(headers), body, Limits())
    if isinstance(result, Replied):
        json.dumps(result.output, allow_nan=False, ensure_ascii=False).encode()
    else:
        assert len(result.error.encode()) >= 1 and len(result.error) <= 128
        assert len(result.cause.encode()) >= 1 and len(result.cause) <= 4096
