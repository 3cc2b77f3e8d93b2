"""No code of the server turns a text into code: every import and call in flowserver/ is looked at."""

import ast

from tests.tidy.source_files import ROOT

FORBIDDEN = {"eval", "exec", "__import__", "compile"}
MODULES = {"pickle", "marshal", "shelve", "code", "codeop"}

ALLOWED = {("flowserver/operations/rewinding.py", "pickle")}
"""It reads nothing but what it has written itself, in memory."""


def _uses(tree: ast.AST) -> set[str]:
    calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imports |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return calls & FORBIDDEN | imports & MODULES


def test_no_text_becomes_code() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), use)
        for path in (ROOT / "flowserver").rglob("*.py")
        for use in _uses(ast.parse(path.read_text("utf-8")))
    }
    assert found == ALLOWED
    assert _uses(ast.parse("import pickle\neval(text)")) == {"pickle", "eval"}
