"""Plain scalars: the core schema of YAML 1.2."""

import pytest

from flowserver.language.scalars import NUMBER_CHARACTERS_MAX, plain_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(text, None) for text in ("", "~", "null", "Null", "NULL")],
        *[(text, True) for text in ("true", "True", "TRUE")],
        *[(text, False) for text in ("false", "False", "FALSE")],
        ("0", 0),
        ("-12", -12),
        ("+12", 12),
        ("010", 10),
        ("0o17", 15),
        ("0x1fF", 511),
        ("9" * NUMBER_CHARACTERS_MAX, 10**NUMBER_CHARACTERS_MAX - 1),
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("+1.5E-2", 0.015),
    ],
)
def test_values(text: str, value: object) -> None:
    assert (plain_value(text), type(plain_value(text))) == (value, type(value))


WORDS = ["yes", "no", "on", "off", "y", "n", "nan", "inf", "tRUE", "nULL", "e1", "=", "<<"]
TIMES = ["2030-01-01", "2030-01-01T00:00:00Z", "12:30:45"]
NEARLY_NUMBERS = ["1_000", "0b1", "0o8", "0xg", "-0x1", "+0o7", ".", "-", "+", "..", "1.2.3", "1e", "٣", "1 2"]


@pytest.mark.parametrize("text", [*WORDS, *TIMES, *NEARLY_NUMBERS])
def test_texts_stay_texts(text: str) -> None:
    assert plain_value(text) == text


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", ".NAN", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"finite|too large"):
        plain_value(text)


@pytest.mark.parametrize("text", ["1" * 1001, "-" + "1" * 1000, "0x" + "f" * 999, "1." + "0" * 999])
def test_long_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="at most 1000 characters"):
        plain_value(text)
