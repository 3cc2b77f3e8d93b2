"""Documentation, docstrings, comments, messages and test names are plain technical English without the words below.

The subject of a sentence is a thing or "you", and the verb is concrete. Each phrase below marks a sentence that has to
be read twice; write what happens instead.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.source_files import PACKAGE, ROOT, TESTS, SourceFile, source_files

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
    TESTS / "conformance" / "README.md",
    TESTS / "language" / "findings.md",
    *ROOT.glob("*.md"),
    PACKAGE / "ARCHITECTURE.md",
)

LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}

PLACES = (PACKAGE, TESTS)

NEWLINE = "\n"
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_pages_are_in_plain_english(page: Path) -> None:
    text = page.read_text("utf-8")
    assert found_in(FENCE.sub(_blank, text)) == []


@pytest.mark.parametrize("place", PLACES, ids=_name)
def test_docstrings_are_in_plain_english(place: Path) -> None:
    files = source_files(place)
    assert files
    found = [f"{source.name}: {words}" for source in files for text in docstrings(source) for words in found_in(text)]
    assert found == []


@pytest.mark.parametrize("place", PLACES, ids=_name)
def test_comments_and_messages_are_in_plain_english(place: Path) -> None:
    found = [
        f"{source.name}:{line}: {words}"
        for source in source_files(place)
        for line, text in (*comments(source), *messages(source))
        for words in found_in(text)
    ]
    assert found == []


def test_names_of_tests_are_in_plain_english() -> None:
    found = [
        f"{source.name}:{line}: {words}"
        for source in source_files(TESTS)
        for line, name in names_of_tests(source)
        for words in found_in(name)
    ]
    assert found == []


def test_comments_and_messages_are_found() -> None:
    text = "log.warning('a %s', 1)  # b\nraise ValueError(f'c {1}') from None\nassert x, 'd'\nother('e')\n"
    source = SourceFile(ROOT / "example.py", text, ast.parse(text))
    assert list(comments(source)) == [(1, "# b")]
    assert sorted(messages(source)) == [(1, "a %s"), (2, "c "), (3, "d")]


def found_in(text: str) -> list[str]:
    """Each phrase on the list, as `line: phrase`."""
    return [f"{text.count(NEWLINE, 0, found.start()) + 1}: {found[0]}" for found in NOT_OURS.finditer(text)]


def docstrings(source: SourceFile) -> Iterator[str]:
    """The docstrings of modules, classes and functions, and the texts below constants and attributes."""
    for node in source.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def comments(source: SourceFile) -> Iterator[tuple[int, str]]:
    """Each comment with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def messages(source: SourceFile) -> Iterator[tuple[int, str]]:
    """Each text of a log line, an assertion, or an error where it is raised, with its line."""
    for node in source.nodes:
        if isinstance(node, ast.Assert) and node.msg is not None:
            yield from _texts(node.msg)
        call = node.exc if isinstance(node, ast.Raise) else node
        if isinstance(call, ast.Call) and (call is not node or _is_logging(call.func)):
            for argument in call.args:
                yield from _texts(argument)


def names_of_tests(source: SourceFile) -> Iterator[tuple[int, str]]:
    """The name of each test as words, with its line."""
    for node in source.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")


def _texts(node: ast.expr) -> Iterator[tuple[int, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.lineno, each.value


def _is_logging(called: ast.expr) -> bool:
    """Whether this is a method of a module's logger, which is named `log` or `plain` here."""
    return (
        isinstance(called, ast.Attribute)
        and called.attr in LOG_METHODS
        and isinstance(called.value, ast.Name)
        and called.value.id in ("log", "plain")
    )


def _blank(found: re.Match[str]) -> str:
    return NEWLINE * found[0].count(NEWLINE)
