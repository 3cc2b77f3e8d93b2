"""Offsets, the places of findings and the positions of editors are the same places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowserver.editing.texts import Extent, Moves, Position, Text, Units
from flowserver.language.graph import Span
from tests.language.test_properties import UNTIMED

TEXTS = st.text(st.sampled_from([*"ab \n\r\ufeff\x85\u2028é\U0001f4a9\ud800"]), max_size=30)


@pytest.mark.parametrize(("units", "position"), [(Units.UTF_8, (1, 6)), (Units.UTF_16, (1, 3)), (Units.UTF_32, (1, 2))])
def test_columns_count_units(units, position):
    text = Text("a\né\U0001f4a9b")
    assert text.position_of(4, units) == position
    assert text.offset_at(Position(*position), units) == 4


def test_lines_of_findings_are_those_of_yaml():
    text = Text("\ufeffa\u2028b\nc")
    assert text.extent_of(Span(2, 1, 2, 2)) == Extent(3, 4)
    assert text.position_of(3, Units.UTF_16) == (0, 3)
    assert text.extent_of(Span(3, 1, 3, 2)) == Extent(5, 6)
    assert text.position_of(5, Units.UTF_16) == (1, 0)


def test_places_behind_the_text_are_its_end():
    text = Text("ab\ncd")
    assert text.offset_of(9, 9) == 5
    assert text.offset_at(Position(9, 0), Units.UTF_16) == 5
    assert text.offset_at(Position(0, 9), Units.UTF_16) == 2
    assert text.line_at(5) == Extent(3, 5)


@UNTIMED
@given(TEXTS, st.sampled_from(Units))
def test_every_position_leads_back_to_its_offset(given_text, units):
    text = Text(given_text)
    for offset in range(len(given_text) + 1):
        if given_text[offset - 1 : offset + 1] != "\r\n":  # which is one break
            assert text.offset_at(text.position_of(offset, units), units) == offset


@UNTIMED
@given(st.text("ab\n"), st.text("o"), st.text("n"), st.text("yz\r"))
def test_what_is_around_a_change_moves_with_it(before, old, new, after):
    moves = Moves(before + old + after, before + new + after)
    for offset in range(len(before) + 1):
        assert (moves.to_newer(offset), moves.to_older(offset)) == (offset, offset)
    for offset in range(1, len(after) + 1):
        older, newer = len(before + old) + offset, len(before + new) + offset
        assert (moves.to_newer(older), moves.to_older(newer)) == (newer, older)


@UNTIMED
@given(TEXTS, TEXTS)
def test_places_stay_in_the_text(older, newer):
    moves = Moves(older, newer)
    found = [moves.to_newer(offset) for offset in range(len(older) + 1)]
    assert found == sorted(found)
    assert 0 <= found[0] <= found[-1] <= len(newer)
