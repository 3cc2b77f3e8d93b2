"""References to secrets in texts."""

import pytest

from flowserver.base.secret_references import (
    filled_text,
    filled_url,
    has_broken_reference,
    is_before_path,
    is_only_references,
    secrets_named_in,
)

VALUES = {"A": "a/b?c#d&e=%é f", "B_2": "b"}


def test_names_and_values():
    text = "x ${secret:A}-${secret:B_2}${secret:A}"
    assert secrets_named_in(text, None, "${secret:C}", "plain") == {"A", "B_2", "C"}
    assert filled_text(text, VALUES) == f"x {VALUES['A']}-b{VALUES['A']}"
    assert filled_text("$ {secret:A}", VALUES) == "$ {secret:A}"


def test_a_value_in_a_url_stays_one_segment_or_parameter():
    assert (
        filled_url("http://h/${secret:A}?k=${secret:B_2}", VALUES) == "http://h/a%2Fb%3Fc%23d%26e%3D%25%C3%A9%20f?k=b"
    )


@pytest.mark.parametrize("text", ["${secret:}", "${secret:a b}", "${secret:1}", "${secret:A", "${secret:A}${secret:"])
def test_broken_references(text):
    assert has_broken_reference(text)


@pytest.mark.parametrize(
    ("url", "is_before"),
    [
        ("http://h/${secret:A}", False),
        ("http://h?${secret:A}", False),
        ("http://${secret:A}/", True),
        ("http://h:${secret:A}/", True),
        ("http://u:${secret:A}@h/", True),
        ("${secret:A}://h/", True),
        ("${secret:A}", True),
    ],
)
def test_where_a_url_may_refer_to_secrets(url, is_before):
    assert is_before_path(url) is is_before


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [
        ("${secret:A}", True),
        ("Bearer ${secret:A}", True),
        ("Bearer  ${secret:A}", False),
        ("${secret:A}${secret:B}", True),
        ("Bearer hunter2 ${secret:A}", False),
        ("x${secret:A}", False),
        ("Bearer ", False),
        ("", False),
    ],
)
def test_texts_that_hold_nothing_but_references(text, is_shown):
    assert is_only_references(text) is is_shown
