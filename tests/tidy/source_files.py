"""Source files, parsed once, for the tests that read code instead of running it."""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "flowserver"
TESTS = ROOT / "tests"


@dataclass(frozen=True)
class SourceFile:
    """One module: `name` is its path from the checkout's root."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The nodes of the whole tree: to walk takes longer than most tests do with them."""
        return tuple(ast.walk(self.tree))

    def place(self, node: ast.stmt | ast.expr) -> str:
        return f"{self.name}:{node.lineno}"


@cache
def source_files(folder: Path = PACKAGE) -> tuple[SourceFile, ...]:
    """Every module below `folder`, in order of path."""
    sources = tuple(_source_file(path) for path in sorted(folder.rglob("*.py")))
    gc.freeze()  # a million nodes that stay
    return sources


@cache
def _source_file(path: Path) -> SourceFile:
    text = path.read_text("utf-8")
    return SourceFile(path, text, ast.parse(text))


def functions_of(source: SourceFile) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, including nested ones."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imported_names(source: SourceFile) -> Iterator[tuple[ast.stmt, str]]:
    """The full name of every import: `import a.b` gives a.b, `from a import b` gives a.b."""
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)
