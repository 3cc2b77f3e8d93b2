"""Differences between the document that a test expects and the actual one, each at its place in the test file."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Final, NamedTuple

from flowserver.base.json_values import Json, dump_json
from flowserver.language.graph import Span
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode, to_json

SHOWN_MAX: Final = 120
"""Characters of a value that a message shows."""


class Difference(NamedTuple):
    """`$.order.ids[2]: expected 1, got 2`, and where the expected value is written."""

    text: str
    span: Span


def differences(expected: Node, actual: Json, *, is_exact: bool, path: str = "$") -> Iterator[Difference]:
    """How the actual document differs. Unless `is_exact`, its objects may have members that are not expected.

    Numbers are equal by value; true and 1 are different.
    """
    if isinstance(expected, MapNode) and isinstance(actual, dict):
        yield from _of_members(expected, actual, is_exact, path)
    elif isinstance(expected, ListNode) and isinstance(actual, list):
        yield from _of_items(expected, actual, is_exact, path)
    elif not isinstance(expected, ScalarNode) or not _is_equal(expected.value, actual):
        text = f"{path}: expected {shown_value(to_json(expected))}, got {shown_value(actual)}"
        yield Difference(text, expected.span)


def _of_members(expected: MapNode, actual: dict[str, Json], is_exact: bool, path: str) -> Iterator[Difference]:
    for entry in expected.entries:
        member = f"{path}.{entry.name}"
        if entry.name in actual:
            yield from differences(entry.value, actual[entry.name], is_exact=is_exact, path=member)
        else:
            text = f"{member}: expected {shown_value(to_json(entry.value))}, but there is no such member"
            yield Difference(text, entry.key_span)
    known = {entry.name for entry in expected.entries}
    for name in actual if is_exact else ():
        if name not in known:
            text = f"{path}.{name}: not expected, got {shown_value(actual[name])}"
            yield Difference(text, expected.entries[0].key_span if expected.entries else expected.span)


def _of_items(expected: ListNode, actual: list[Json], is_exact: bool, path: str) -> Iterator[Difference]:
    if len(expected.items) != len(actual):
        text = f"{path}: expected {len(expected.items)} elements, got {len(actual)}: {shown_value(actual)}"
        yield Difference(text, expected.span)
        return
    for index, (item, value) in enumerate(zip(expected.items, actual, strict=True)):
        yield from differences(item, value, is_exact=is_exact, path=f"{path}[{index}]")


def _is_equal(expected: Json, actual: Json) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def shown_value(value: Json) -> str:
    """The value as JSON, cut."""
    text = dump_json(_Beginning().of(value))
    return text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"


class _Beginning:
    """As much of a value as is more than SHOWN_MAX characters of JSON, so that a large one costs no more to show."""

    def __init__(self) -> None:
        self._values_left = SHOWN_MAX

    def of(self, value: Json) -> Json:
        """The beginning of a value."""
        self._values_left -= 1
        if isinstance(value, str):
            return value[: SHOWN_MAX + 1]
        if isinstance(value, dict):
            return {key[: SHOWN_MAX + 1]: self.of(each) for key, each in takewhile(self._goes_on, value.items())}
        if isinstance(value, list):
            return [self.of(each) for each in takewhile(self._goes_on, value)]
        return value

    def _goes_on(self, _: object) -> bool:
        return self._values_left > 0
