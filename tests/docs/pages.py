"""The parts of the documentation's pages: fenced blocks, headings, links."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

FENCE = re.compile(r"^```(\S*)([^\n`]*)\n(.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^#+ +(.*)$", re.M)
LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after that (which readers do not see), its text, and its position."""

    page: Path
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{title_of(self.page)}:{self.line}"

    def mark(self, name: str) -> str | None:
        """The value of a mark `name=value`, or None."""
        return next((mark.partition("=")[2] for mark in self.marks if mark.startswith(f"{name}=")), None)


@cache
def pages() -> tuple[Path, ...]:
    """Every page of the documentation, in order of path."""
    return tuple(sorted(DOCS.rglob("*.md")))


def title_of(page: Path) -> str:
    """The path below docs/, as in `how-to/keys.md`."""
    return str(page.relative_to(DOCS))


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return tuple(
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], tuple(found[2].split()), found[3])
        for found in FENCE.finditer(text)
    )


def links(page: Path) -> list[str]:
    """The targets of a page's links, without those in fenced blocks."""
    return LINK.findall(_prose(page))


def anchors(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them from the headings."""
    titles = (re.sub(r"[^\w\- ]", "", title.lower()) for title in HEADING.findall(_prose(page)))
    return {title.strip().replace(" ", "-") for title in titles}


def _prose(page: Path) -> str:
    return FENCE.sub("", page.read_text("utf-8"))
