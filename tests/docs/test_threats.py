"""Each class of the page about threats names tests that exist; CI runs them."""

import re
from functools import cache

import pytest

from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "maintainers" / "threats.md"
CLASSES = 22
NAMED = re.compile(r"\[([\w/.]+\.py)::(test_\w+)\]\(([^)]+)\)")
ROW = re.compile(r"\| (\d+) \| (.+) \| (.+) \| (.+) \|")


def rows() -> list[tuple[str, str, str, str]]:
    """Number, class, rule and proof of each row of the table."""
    return [found.groups() for line in PAGE.read_text("utf-8").splitlines() if (found := ROW.fullmatch(line))]


@cache
def names_in(path: str) -> frozenset[str]:
    """Names of the tests in a file."""
    return frozenset(re.findall(r"^ *(?:async )?def (test_\w+)\(", (ROOT / path).read_text("utf-8"), re.MULTILINE))


def test_every_class_has_one_row() -> None:
    assert [number for number, *_ in rows()] == [str(number) for number in range(1, CLASSES + 1)]


@pytest.mark.parametrize(("number", "proof"), [(row[0], row[3]) for row in rows()])
def test_every_proof_exists(number: str, proof: str) -> None:
    named = NAMED.findall(proof)
    assert named or "](../../SECURITY.md#" in proof, f"class {number} has neither a test nor a sentence in SECURITY.md"
    for shown, name, target in named:
        path = (PAGE.parent / target).resolve().relative_to(ROOT)
        assert path.as_posix().endswith(shown), f"{shown} leads to {path}"
        assert name in names_in(path.as_posix()), f"{path} has no {name}"
    assert proof.count("::") == len(named), f"class {number}: a test is not a link"
