"""Migrations add; they do not take away what the version before them uses. docs/maintainers/changes.md has the rule."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

MIGRATIONS = Path(__file__).parents[2] / "migrations" / "versions"

FIRST: Final = "0025"
"""The first migration under the rule."""

CONTRACTIONS: Final[dict[str, str]] = {}
"""Migrations that take away, and the release since which no code uses what they take."""

TAKING = ("drop_column", "drop_table", "rename_table")
TAKING_SQL = re.compile(r"\b(DROP\s+(TABLE|COLUMN|VIEW)|RENAME\s+(TO|COLUMN))\b", re.I)


def what_it_takes(source: str) -> Iterator[str]:
    """What the upgrade of a migration does that code of the version before it may not survive."""
    for node in ast.walk(_upgrade(ast.parse(source))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and TAKING_SQL.search(node.value):
            yield node.value
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in TAKING or (name == "alter_column" and given.keys() & {"new_column_name", "type_", "nullable"}):
            yield ast.unparse(node)
        if name == "add_column" and isinstance(node.args[-1], ast.Call):
            column = {keyword.arg: ast.unparse(keyword.value) for keyword in node.args[-1].keywords}
            if column.get("nullable") == "False" and "server_default" not in column:  # older code does not fill it
                yield ast.unparse(node)


def _upgrade(module: ast.Module) -> ast.FunctionDef:
    [found] = [each for each in module.body if isinstance(each, ast.FunctionDef) and each.name == "upgrade"]
    return found


def test_migrations_take_nothing_away() -> None:
    newest = [file for file in sorted(MIGRATIONS.glob("*.py")) if file.name[:4] >= FIRST]
    assert newest
    takes = {file.name[:4]: list(what_it_takes(file.read_text("utf-8"))) for file in newest}
    assert {revision: each for revision, each in takes.items() if each and revision not in CONTRACTIONS} == {}
    assert [revision for revision in CONTRACTIONS if not takes.get(revision)] == []


@pytest.mark.parametrize(
    "statement",
    [
        "op.drop_column('flows', 'x')",
        "op.drop_table('flows')",
        "op.rename_table('flows', 'flow')",
        "op.alter_column('flows', 'x', new_column_name='y')",
        "op.alter_column('flows', 'x', nullable=False)",
        "op.execute('ALTER TABLE flows DROP COLUMN x')",
        "op.execute('ALTER TABLE flows RENAME TO flow')",
        "op.add_column('flows', sa.Column('x', sa.Text(), nullable=False))",
    ],
)
def test_what_takes_something_away_is_found(statement: str) -> None:
    assert list(what_it_takes(f"def upgrade():\n    {statement}\n"))
