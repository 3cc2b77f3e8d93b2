"""Updates the generated parts of docs/: `python -m tests.docs.generate`.

A generated part is between `<!-- generated: NAME -->` and `<!-- end -->`; the rest of a page is written by hand.
"""

import re

from tests.docs.pages import ROOT, pages
from tests.docs.tables import TABLES

PART = re.compile(r"^(<!-- generated: (.+?) -->)$.*?^(<!-- end -->)$", re.M | re.S)


def with_generated_parts(text: str) -> str:
    """The page with every generated part up to date; raises KeyError for an unknown part."""
    return PART.sub(lambda part: f"{part[1]}\n\n{TABLES[part[2]]()}\n\n{part[3]}", text)


def main() -> None:
    for page in pages():
        text = page.read_text("utf-8")
        if (wanted := with_generated_parts(text)) != text:
            page.write_text(wanted, "utf-8")
            print(f"brought up to date: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
