"""Links within the project resolve."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, anchors, links, pages, title_of

ARCHITECTURE = ROOT / "flowserver" / "ARCHITECTURE.md"
ARCHITECTURE_LINES_MAX = 90
"""One page. Further theory belongs in the docstring of the file that depends on it."""

LINKING = (*pages(), *ROOT.glob("*.md"), ARCHITECTURE)


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = [link for link in links(page) if "://" not in link and not _leads_somewhere(page, link)]
    assert broken == []


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_the_index_names_every_page() -> None:
    named = {link.partition("#")[0] for link in links(DOCS / "README.md")}
    assert {title_of(page) for page in pages()} - named == {"README.md"}


def test_files_that_the_architecture_names_exist() -> None:
    named = set(re.findall(r"[\w./]+\.py\b", ARCHITECTURE.read_text("utf-8")))
    assert "store/sql/prepared.py" in named
    assert {name for name in named if not (ARCHITECTURE.parent / name).is_file()} == set()


def test_the_architecture_is_one_page() -> None:
    assert len(ARCHITECTURE.read_text("utf-8").splitlines()) <= ARCHITECTURE_LINES_MAX
