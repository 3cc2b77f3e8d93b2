"""Updates the generated parts of docs/, and the JSON Schemas of the package: `python -m tests.docs.generate`.

A generated part is between `<!-- generated: NAME -->` and `<!-- end -->`; the rest of a page is written by hand.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from flowserver.base.limits import Limits
from flowserver.cli.printable import json_text
from flowserver.cli.schema import FOLDER, schema_of
from tests.docs.pages import ROOT, pages
from tests.docs.tables import TABLES

PART = re.compile(r"^(<!-- generated: (.+?) -->)$.*?^(<!-- end -->)$", re.M | re.S)


def with_generated_parts(text: str) -> str:
    """The page with every generated part up to date; raises KeyError for an unknown part."""
    return PART.sub(lambda part: f"{part[1]}\n\n{TABLES[part[2]]()}\n\n{part[3]}", text)


def schema_files() -> Iterator[tuple[Path, str]]:
    """Each schema that the package has as a file, with its text."""
    for kind in ("flow", "flowtest"):
        yield FOLDER / f"{kind}.schema.json", json_text(schema_of(kind, Limits()), indent=2) + "\n"


def main() -> None:
    for file, text in schema_files():
        file.write_text(text, "utf-8")
    for page in pages():
        text = page.read_text("utf-8")
        if (wanted := with_generated_parts(text)) != text:
            page.write_text(wanted, "utf-8")
            print(f"brought up to date: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
