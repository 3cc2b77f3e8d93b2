"""The console's sources: their types, their sizes, and what they must not hold."""

import re
import subprocess
from pathlib import Path

from flowserver.api.console import FOLDER, PAGE
from flowserver.api.console_modules import COMMENT, IMPORT
from tests.support.node import NODE

HERE = Path(__file__).parent
SOURCES = [
    path for path in FOLDER.rglob("*") if path.suffix in (".js", ".css", ".html") and path.parent.name != "vendor"
]
LINES_MAX = 300

FORBIDDEN = {
    r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write": "what came from users is text",
    r"\beval\(|new Function\(": "the policy forbids it",
    r"""(?:href|src|action)=["']/|(?:api|fetch|import)\(["'`]/""": "an absolute path breaks behind a path prefix",
    r"https?://(?!www\.w3\.org/)": "the console works offline",
    r"@ts-(?:ignore|nocheck)": "types are checked",
    r"\b(?:TODO|FIXME|XXX)\b": "nothing is left undone",
}


def test_the_types_are_right() -> None:
    checked = subprocess.run(
        [NODE, "node_modules/typescript/bin/tsc", "--project", "."], cwd=HERE, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_file_is_long() -> None:
    lines = {path.name: path.read_text("utf-8").count("\n") for path in SOURCES}
    assert {name: count for name, count in lines.items() if count > LINES_MAX} == {}


def test_no_source_holds_what_it_must_not() -> None:
    texts = {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in SOURCES}
    found = {
        f"{name}: {match[0]}": why
        for pattern, why in FORBIDDEN.items()
        for name, text in texts.items()
        for match in re.finditer(pattern, text)
    }
    assert found == {}


def test_the_page_names_all_modules_that_it_begins_with() -> None:
    """So a browser asks for them at once: it would find them one level after another, each after a round trip."""
    wanted = ["main.js"]
    for name in wanted:
        text = COMMENT.sub("", (FOLDER / name).read_text("utf-8"))
        imported = [(FOLDER / name).parent.joinpath(each).resolve() for each in IMPORT.findall(text)]
        new = [path.relative_to(FOLDER.resolve()).as_posix() for path in imported]
        wanted += [each for each in new if each not in wanted]
    named = re.findall(r'(?:modulepreload" href|module" src)="console/([^"]+)"', (FOLDER / PAGE).read_text("utf-8"))
    assert sorted(named) == sorted(wanted)
