"""Runs findings.md: every definition gives exactly the diagnostics that its comments name, at their positions."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from flowserver.language.diagnostics import DIAGNOSTICS, Severity
from tests.language.definitions import HEADER, diagnostics_of

FILE = Path(__file__).with_name("findings.md")
BLOCK = re.compile(r"^```yaml( steps)?\n(.*?)^```$", re.M | re.S)
COMMENT = re.compile(r" *#! (.*)$")

LIMITS_PASSED = {
    "definition-too-large",
    "nesting-too-deep",
    "too-many-branches",
    "too-many-nodes",
    "too-many-steps",
    "too-much-text",
}
MANY_FINDINGS = {"checking-stopped", "more-warnings"}
MISSING_TARGETS = {"starts-itself", "unknown-flow", "unknown-function", "unknown-queue", "unknown-topic"}
OF_FLOW_TESTS = {"unknown-resource", "unknown-step", "unusable-callee", "unusable-flow"}
ELSEWHERE = {"bad-character", *LIMITS_PASSED, *MANY_FINDINGS, *MISSING_TARGETS, *OF_FLOW_TESTS}
"""Ids that need texts too large or unusual for a Markdown file, or a server, or a flow test; test_source.py,
test_limits.py, test_work.py, test_deployments.py and flowtests/test_mistakes.py produce them.
"""


@dataclass(frozen=True)
class Block:
    """A definition, and its expected findings as (line, column, id)."""

    place: str
    text: str
    findings: list[tuple[int, int, str]]

    def __str__(self) -> str:
        return self.place


@cache
def blocks() -> list[Block]:
    content = FILE.read_text("utf-8")
    return [_block(content, match) for match in BLOCK.finditer(content)]


def _block(content: str, match: re.Match[str]) -> Block:
    written = (HEADER if match[1] else "") + match[2]
    findings = []
    for number, line in enumerate(written.splitlines(), start=1):
        if comment := COMMENT.search(line):
            marks = (mark.rsplit(":", 1) for mark in comment[1].split())
            findings += [(number, int(column), id) for id, column in marks]
    text = "\n".join(COMMENT.sub("", line) for line in written.splitlines()) + "\n"
    line = content.count("\n", 0, match.start()) + 1
    return Block(f"findings.md:{line}", text, sorted(findings))


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_findings(block: Block) -> None:
    found = [(item.span.line, item.span.column, item.id) for item in diagnostics_of(block.text)]
    assert sorted(found) == block.findings


def test_every_id_occurs() -> None:
    assert {id for block in blocks() for _, _, id in block.findings} | ELSEWHERE == set(DIAGNOSTICS)


def test_the_table_marks_the_warnings() -> None:
    found = {item for block in blocks() for item in diagnostics_of(block.text)}
    warnings = {item.id for item in found if item.severity is Severity.WARNING}
    table = {id for id, description in DIAGNOSTICS.items() if description.startswith("Warning: ")}
    assert warnings == table - ELSEWHERE
