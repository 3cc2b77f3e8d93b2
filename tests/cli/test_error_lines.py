"""An error and its cause in a line that is cut."""

import pytest

from flowserver.cli.remote.error_lines import error_text


@pytest.mark.parametrize(
    ("error", "cause", "shown"),
    [
        ("Declined", "no card", "Declined: no card"),
        ("Declined", None, "Declined"),
        ("", "the customer left", "the customer left"),
        (None, "the customer left", "the customer left"),
        (None, None, ""),
        ("ValueError", '{"errorMessage": "card \\"x\\"", "stackTrace": ["…"]}', 'ValueError: card "x"'),
        ("ValueError", '{"errorType": "ValueError", "errorMessage": "card"}', "ValueError: card"),
        ("ValueError", '{"errorMessage":"card \\u0041","stackTrace":["a lo', "ValueError: card A"),
        ("ValueError", '{"errorMessage":"cut her', 'ValueError: {"errorMessage":"cut her'),
        (
            "ValueError",
            '{"errorMessage":"\\x","stackTrace":["a lo',
            'ValueError: {"errorMessage":"\\x","stackTrace":["a lo',
        ),
        ("ValueError", '{"errorMessage": 7}', 'ValueError: {"errorMessage": 7}'),
        ("ValueError", '{"errorMessage": " "}', 'ValueError: {"errorMessage": " "}'),
        ("ValueError", '["errorMessage"]', 'ValueError: ["errorMessage"]'),
    ],
)
def test_error_and_cause_in_one_text(error, cause, shown):
    assert error_text(error, cause) == shown
