"""Bugs that people make, one a file: `#! RULE` marks the line of each finding, and there are no others."""

import re
from pathlib import Path

import pytest

from flowserver.analysis.proving import prove
from flowserver.analysis.rules import RULES
from flowserver.base.limits import Limits

FILES = sorted(Path(__file__).with_name("seeded_bugs").glob("*.yaml"))
MARK = re.compile(r" *#! (\S+)$")
ELSEWHERE = {"passes-limit", "step-fails-on-path", "unused-ignore"}
"""Rules whose bugs are too long for a file, or about comments; test_proving.py has them."""


def expected(text: str) -> list[tuple[int, str]]:
    """The marks of a text: line and rule."""
    lines = enumerate(text.splitlines(), start=1)
    return [(number, found[1]) for number, line in lines if (found := MARK.search(line))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_bug_is_found(file: Path) -> None:
    text = file.read_text("utf-8")
    assert text.startswith("# "), "the story of the bug"
    found = [(each.span.line, each.id) for each in prove(text, Limits()).findings]
    assert found == expected(text) != []


def test_every_rule_has_a_bug() -> None:
    marked = {rule for file in FILES for _, rule in expected(file.read_text("utf-8"))}
    assert marked >= set(RULES) - ELSEWHERE
    assert len(FILES) >= 50
