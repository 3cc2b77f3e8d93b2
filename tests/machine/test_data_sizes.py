"""The size rule is exact in bytes and in depth, and values are rarely serialized to be measured."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.base.json_values import DEPTH_MAX, Json, JsonObject, depth_exceeds, dump_json_bytes, json_bytes
from flowserver.base.limits import Limits
from flowserver.expressions.paths import Path, find
from flowserver.machine.advance import advance
from flowserver.machine.commands import InvokeTask
from flowserver.machine.data_sizes import LARGE_BYTES, PIECE, PLAIN_BYTES, REMEMBERED_MAX, Excess, Sizes, measure_plain
from flowserver.machine.mappings import Environment
from flowserver.machine.messages import Continue, Message, Start, Success, TaskReplied
from flowserver.machine.state import Execution, Status
from tests.support.flows import flow
from tests.support.world import NOW_MS, token_for

PLENTY = 10_000_000
TIMES_AT_MOST = 12
"""The allowed cost of ten times the items."""

COUNTS = st.integers(0, 2 * PIECE + 1)
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.just("é" * LARGE_BYTES) | COUNTS.map(lambda n: [n] * n),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.builds(
    lambda values, count: {f"é{n}": value for n, value in enumerate(values)} | {f"k{n}": n for n in range(count)},
    st.lists(VALUES, max_size=4),
    COUNTS,
)
DOCUMENTS = st.lists(OBJECTS | st.lists(VALUES, max_size=4), min_size=1, max_size=3)


@given(DOCUMENTS)
def test_documents_at_the_exact_limit_fit_however_often_they_are_measured(documents: list[Any]) -> None:
    size = sum(map(json_bytes, documents))
    measured = Sizes()
    for _ in range(2):
        assert measured.measure(size, documents) == size
        assert measure_plain(size, documents) in (None, size)
        assert measure_plain(size - 1, documents) is None
        assert measured.measure(size - 1, documents) is Excess.BYTES


def _nested(levels: int) -> Json:
    value: Json = "x" * PLAIN_BYTES
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


@pytest.mark.parametrize("beside", [{}, {f"k{number}": [number] for number in range(DEPTH_MAX)}])
@pytest.mark.parametrize("levels", [DEPTH_MAX, DEPTH_MAX + 1, DEPTH_MAX + 2])
def test_documents_nest_as_deep_as_texts_may(levels: int, beside: dict[str, Json]) -> None:
    document = {"deep": _nested(levels - 1), "beside": beside}
    expected = Excess.DEPTH if depth_exceeds(document, DEPTH_MAX) else json_bytes(document)
    assert (expected is Excess.DEPTH) == (levels > DEPTH_MAX + 1)
    measured = Sizes()
    for _ in range(2):
        assert measured.measure(PLENTY, [document]) == expected
        assert (measured.measure(PLENTY, [[document["deep"]]]) is Excess.DEPTH) == (expected is Excess.DEPTH)


def test_a_document_too_large_and_too_deep_is_reported_as_too_large() -> None:
    assert Sizes().measure(100, [{"deep": _nested(DEPTH_MAX + 5)}]) is Excess.BYTES


def test_a_value_shared_by_many_documents_is_serialized_once(written: list[int]) -> None:
    shared = list(range(10_000))
    measured = Sizes()
    for number in range(100):
        assert measured.measure(PLENTY, [{"shared": shared, "number": number}, {"again": shared}]) != Excess.BYTES
    assert sum(written) < 3 * json_bytes(shared)


def test_a_new_value_is_never_mistaken_for_a_measured_one() -> None:
    """A value without references would be collected, and the next could get its identity."""
    measured = Sizes()
    for number in range(1_000):
        size = json_bytes(document := {"k": ["x" * (PLAIN_BYTES + number)]})
        assert measured.measure(size, [document]) == size
        assert measured.measure(size - 1, [document]) is Excess.BYTES
    assert len(measured.known) == REMEMBERED_MAX, "and few are kept"


def test_a_value_over_the_limit_is_not_serialized_completely(written: list[int]) -> None:
    large = [f"{number}" * 1_000 for number in range(10_000)]
    assert Sizes().measure(100_000, [{"large": large}]) is Excess.BYTES
    assert sum(written) < 300_000


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each text that is made to measure something."""
    lengths: list[int] = []

    def noting(value: Json) -> bytes:
        text = dump_json_bytes(value)
        lengths.append(len(text))
        return text

    monkeypatch.setattr("flowserver.machine.data_sizes.dump_json_bytes", noting)
    monkeypatch.setattr("flowserver.machine.data_sizes.json_bytes", lambda value: len(noting(value)))
    return lengths


# Measurements in a foreach over many items

FEW, MANY = 200, 2_000
EACH = """
    - type: foreach
      name: each
      iterationMapping: {collection: "%s", item: it}
      steps:
      - {type: pass, name: s}
      outputMappings: [{target: done, source: true}]
"""
ENVIRONMENT = Environment(NOW_MS, Limits(), "null", token_for)


def _measured_bytes(written: list[int], collection: str, given: JsonObject) -> int:
    """The bytes serialized to measure an execution whose iterations all see the whole collection."""
    written.clear()
    execution = Execution("id1", "conf", "exec1", given, 0, 0)
    message: Message = Start()
    while execution.is_running:
        advance(flow(EACH % collection), execution, message, ENVIRONMENT)
        message = Continue()
    assert execution.status is Status.SUCCEEDED
    return sum(written)


@pytest.mark.parametrize("collection", ["$.items", "$.items[*]"])
@pytest.mark.parametrize("item", [7, {"sku": "x" * 30}])
def test_ten_times_the_items_need_ten_times_the_bytes_to_measure(
    written: list[int], collection: str, item: Json
) -> None:
    few = _measured_bytes(written, collection, {"items": [item] * FEW})
    many = _measured_bytes(written, collection, {"items": [item] * MANY})
    assert many <= TIMES_AT_MOST * few, f"{few} bytes for {FEW} items, {many} for {MANY}"


TASK = """{type: task, name: s, resourceArn: 'acs:fc:::services/s/functions/f',
        inputMappings: [{target: it, source: $input.it}], outputMappings: [{target: ok, source: $local.ok}]}"""


def _bytes_of_calls(written: list[int], count: int) -> int:
    """The bytes serialized to measure a foreach over this many calls, each answered in its own turn."""
    written.clear()
    each = flow((EACH % "$.items").replace("{type: pass, name: s}", TASK))
    execution = Execution("id1", "conf", "exec1", {"items": list(range(count))}, 0, 0)
    turn = advance(each, execution, Start(), ENVIRONMENT)
    waiting = list(turn.commands)
    while execution.is_running:
        call = waiting.pop(0)
        assert isinstance(call, InvokeTask)
        reply = TaskReplied(call.scope_id, call.wait_id, Success({"ok": True}))
        waiting += advance(each, execution, reply, ENVIRONMENT).commands
    assert (execution.status, execution.sizes) == (Status.SUCCEEDED, None)
    return sum(written)


def test_each_turn_of_a_foreach_measures_only_new_data(written: list[int]) -> None:
    few, many = _bytes_of_calls(written, FEW), _bytes_of_calls(written, MANY)
    assert many <= TIMES_AT_MOST * few, f"{few} bytes for {FEW} items, {many} for {MANY}"


def test_a_turn_searches_a_collection_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def noting(path: Path, value: Json) -> Json:
        looked.append(path.text)
        return find(path, value)

    monkeypatch.setattr("flowserver.machine.turn.find", noting)
    execution = Execution("id1", "conf", "exec1", {"items": list(range(50))}, 0, 0)
    advance(flow(EACH % "$.items[*]"), execution, Start(), ENVIRONMENT)
    assert execution.status is Status.SUCCEEDED
    assert looked == ["$.items[*]"]
