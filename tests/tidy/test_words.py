"""What people read is plain technical English: the documentation and docstrings avoid the words that are not ours.

The subject of a sentence is a thing or "you", and the verb is concrete. Each phrase below is a sign of a sentence
that has to be read twice; write what happens instead.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.source_files import PACKAGE, ROOT, source_files

NOT_OURS = re.compile(
    r"""\b(?:
        whoever | whatever | whomever | nobody | somebody | everybody | no\s+one | someone | everyone
      | the\s+like | one\s+that | one\s+who | those\s+who
      | (?:is|are|was|were|be|been|being)\s+told | tells?\s+of
      | (?:has|have|had)\s+in\s+hand | is\s+in\s+hand
      | (?:come|comes|came|coming)\s+to\s+an\s+end | (?:lies|lying|lay|lie)\s+about
      | as\s+many\s+as\s+may | so\s+many\s+as | what\s+becomes\s+of | (?:comes|came)\s+of\s+it
      | mend | mends | mended | stands | stood | goes\s+on\s+all\s+the\s+same | in\s+vain
    )\b""",
    re.X | re.I,
)

PAGES = (
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    ROOT / "README.md",
    PACKAGE / "ARCHITECTURE.md",
)

CLEAN = (
    "api",
    "base",
    "cli",
    "engine/deliveries",
    "engine/functions",
    "expressions",
    "front",
    "hosting",
    "invokers",
    "language",
    "machine",
    "operations",
    "store",
)
"""Folders of the package whose docstrings are clean. Add a folder when you have edited it."""

NEWLINE = "\n"
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_in_plain_english(page: Path) -> None:
    text = page.read_text("utf-8")
    assert found_in(FENCE.sub(_blank, text)) == []


@pytest.mark.parametrize("place", CLEAN)
def test_docstrings_are_in_plain_english(place: str) -> None:
    files = source_files(PACKAGE / place)
    assert files
    found = [
        f"{source.name}: {words}" for source in files for text in docstrings(source.tree) for words in found_in(text)
    ]
    assert found == []


def found_in(text: str) -> list[str]:
    """Each phrase that is not ours, as `line: phrase`."""
    return [f"{text.count(NEWLINE, 0, found.start()) + 1}: {found[0]}" for found in NOT_OURS.finditer(text)]


def docstrings(tree: ast.Module) -> Iterator[str]:
    """The docstrings of modules, classes and functions, and the texts below constants and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def _blank(found: re.Match[str]) -> str:
    return NEWLINE * found[0].count(NEWLINE)
