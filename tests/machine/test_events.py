"""The large values of an event's documents, stored as separate parts."""

from typing import Any

import pytest

from flowserver.machine.events import LARGE_CHARACTERS, LARGE_ELEMENTS, Part, cut


@pytest.mark.parametrize(
    "value",
    [
        "x" * LARGE_ELEMENTS,
        "x" * (LARGE_CHARACTERS - 1),
        [0] * (LARGE_ELEMENTS - 1),
        dict.fromkeys(map(str, range(LARGE_ELEMENTS - 1))),
        10**2_000,
        None,
    ],
    ids=["text", "longer text", "list", "object", "number", "null"],
)
def test_a_detail_without_large_values_is_unchanged(value: Any) -> None:
    detail = {"input": {"a": value}, "local": {}, "cause": "x" * 5_000}
    rest, parts = cut(detail)
    assert rest is detail
    assert parts == ()


@pytest.mark.parametrize(
    "value",
    ["x" * LARGE_CHARACTERS, [0] * LARGE_ELEMENTS, dict.fromkeys(map(str, range(LARGE_ELEMENTS)))],
    ids=["text", "list", "object"],
)
def test_large_values_are_cut_out_and_the_documents_are_unchanged(value: Any) -> None:
    detail = {"input": {"small": "x" * LARGE_ELEMENTS, "large": value}, "name": "n"}
    rest, [part] = cut(detail)
    assert rest == {"input": {"small": "x" * LARGE_ELEMENTS, "large": None}, "name": "n"}
    assert part == Part("input", "large", value)
    assert part.value is value
    assert detail["input"] == {"small": "x" * LARGE_ELEMENTS, "large": value}
