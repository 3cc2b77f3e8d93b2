"""For any text and any place of it there is an answer, and places are in the text."""

import json
import random
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from flowserver.editing.completion import completions
from flowserver.editing.cursor import cursor_at
from flowserver.editing.files import Definition, FlowTest
from flowserver.editing.findings import marks_of_definition
from flowserver.editing.fixes import fixes_of
from flowserver.editing.flow_test_completion import flow_test_completions
from flowserver.editing.hover import hover_at
from flowserver.editing.step_names import CannotRename, mentions, references, renamed, step_at
from flowserver.editing.symbols import symbols_of
from tests.editing.conftest import LIMITS, ORDER, TESTS, Folder
from tests.language.test_properties import NEAR_FLOWS, UNTIMED, YAML_PIECES
from tests.simulation.generator import Generator

BROKEN = st.builds(
    lambda text, start, length, piece: text[:start] + piece + text[start + length :],
    st.sampled_from([ORDER, TESTS]),
    st.integers(0, len(ORDER)),
    st.integers(0, 40),
    st.lists(YAML_PIECES, max_size=3).map("".join),
)
TEXTS = st.one_of(BROKEN, NEAR_FLOWS.map(json.dumps), st.lists(YAML_PIECES, max_size=20).map("".join))


@UNTIMED
@given(TEXTS, TEXTS, st.integers(0, 1000))
@example(ORDER, ORDER, 5)
def test_any_place_of_any_text_is_answered(before, text, place):
    folder = Folder()
    offset = place % (len(text) + 1)
    path = Path("/flows/order.yaml")
    folder.put("order.yaml", before)
    file = folder.put("order.yaml", text)
    assert isinstance(file, Definition)
    places = [
        each.extent
        for mark in marks_of_definition(file)
        for each in (mark, *(fix.edit for fix in fixes_of(mark, file.text)))
    ]
    if hover := hover_at(file, offset, path, folder):
        places.append(hover.extent)
    if step := step_at(file, offset):
        places += [each.extent for each in references(file, step, path, folder)]
        try:
            places += [edit.extent for _, edit in renamed(file, step, "other", path, folder)]
        except CannotRename:
            assert file.tree is None or step.within.named("other")
    if cursor := cursor_at(file, offset):
        places.append(completions(file, cursor)[0])
    places += [symbol.extent for symbol in symbols_of(file)]
    assert all(0 <= start <= end <= len(text) for start, end in places)


@UNTIMED
@given(TEXTS, TEXTS, st.integers(0, 1000))
@example(TESTS, TESTS, 5)
def test_any_place_of_any_flow_test_is_answered(before, text, place):
    folder = Folder()
    offset = place % (len(text) + 1)
    path = Path("/flows/order.flowtest.yaml")
    folder.put("order.yaml", ORDER)
    folder.put(path.name, before)
    file = folder.put(path.name, text)
    assert isinstance(file, FlowTest)
    places = [mention.extent for mention in mentions(file)]
    if hover := hover_at(file, offset, path, folder):
        places.append(hover.extent)
    if cursor := cursor_at(file, offset):
        places.append(flow_test_completions(file, cursor, path, folder)[0])
    places += [symbol.extent for symbol in symbols_of(file)]
    assert all(0 <= start <= end <= len(text) for start, end in places)


def test_a_renamed_step_of_a_random_flow_leaves_a_valid_flow_of_the_same_shape():
    for seed in range(25):
        text = json.dumps(Generator(random.Random(seed)).definition(), indent=1)
        file = Definition(text, LIMITS)
        for step in list(file.outline.steps())[:3]:
            result = text
            edits = [edit for _, edit in renamed(file, step, "another", None, Folder())]
            for edit in sorted(edits, key=lambda each: each.extent, reverse=True):
                result = result[: edit.extent.start] + edit.text + result[edit.extent.end :]
            after = Definition(result, LIMITS)
            ids = [mark.found.id for mark in marks_of_definition(file)]
            assert [mark.found.id for mark in marks_of_definition(after)] == ids
            assert sum(other.name == "another" for other in after.outline.steps()) == 1
