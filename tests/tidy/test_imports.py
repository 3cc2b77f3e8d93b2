"""Layers import downwards, imports are at the top, and the pure packages use no I/O, clock or randomness."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter

import pytest

from flowserver.api.console_modules import COMMENT, IMPORT
from flowserver.base.lazy_import import load
from tests.tidy.source_files import PACKAGE, ROOT, functions_of, imported_names, source_files

PURE_PACKAGES = ("expressions", "language", "machine")
IMPURE_MODULES = {
    "aiohttp", "asyncio", "httpx", "os", "random", "secrets", "socket", "sqlalchemy", "subprocess",
    "time", "uuid", "uuid_utils",
}  # fmt: skip
PLACE = re.compile(r"flowserver(?:\.\w+)+:\w+")
LATER = {"aiohttp", "alembic", "fastapi", "httpx", "nats", "opentelemetry", "psycopg", "rich"}
"""Modules that a start on SQLite does not load until they are needed; loading all takes longer than
the start itself.
"""

FOLDS_OF_EVENTS = {
    f"flowserver.machine.{name}"
    for name in [
        "events",
        "event_paths",
        "event_details",
        "foreach_iterations",
        "step_entries",
        "step_summary",
        "step_summary_fold",
    ]
}
"""Modules that the commands share with the server, so that both count alike: folds over events without dependencies."""

OWN_EXECUTORS = {
    "flowserver/engine/commit/committer.py",
    "flowserver/engine/reads/lookup_reader.py",
}
"""The modules that run work in an executor, each in an executor of its own."""

CLOCK_READERS = {"now", "utcnow", "today"}


def test_layers_import_downwards_only() -> None:
    # In its own process, because it turns off every logger.
    command = (sys.executable, "-c", "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == os.EX_OK, done.stdout


def test_modules_of_the_console_import_each_other_in_no_circle() -> None:
    console = PACKAGE / "console"
    imports = {
        path: {(path.parent / name).resolve() for name in IMPORT.findall(COMMENT.sub("", path.read_text()))}
        for path in sorted(console.rglob("*.js"))
        if "vendor" not in path.parts
    }
    assert sum(map(len, imports.values())) > 100, "the imports are not read"
    TopologicalSorter(imports).prepare()  # raises CycleError


def test_no_function_imports() -> None:
    late = {
        source.place(node)
        for source in source_files()
        for function in functions_of(source)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert late == set()


def test_one_module_loads_later() -> None:
    loaders = {
        source.name for source in source_files() for _, name in imported_names(source) if "import_module" in name
    }
    assert loaders == {"flowserver/base/lazy_import.py"}


def test_late_modules_exist_and_are_in_no_higher_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    rank = {name: rank for rank, names in enumerate(contracts[0]["layers"]) for name in names.split(" | ")}
    for source in source_files():
        own = source.path.relative_to(PACKAGE).with_suffix("").parts[0]
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
                assert callable(load(node.value))
                assert rank[node.value.partition(":")[0].split(".")[1]] >= rank[own], source.place(node)


def test_a_start_loads_no_unused_module() -> None:
    loaded = "import sys, flowserver.cli.failures, flowserver.cli.serve; print(*sys.modules)"
    done = subprocess.run((sys.executable, "-c", loaded), capture_output=True, text=True, timeout=120, check=True)
    assert LATER & set(done.stdout.split()) == set()


def test_client_commands_load_nothing_of_the_server() -> None:
    loaded = "import sys, pkgutil, importlib, flowserver.cli.main, flowserver.cli.remote as room;"
    loaded += "[importlib.import_module(f'{room.__name__}.{each.name}') for each in pkgutil.iter_modules(room.__path__)"
    loaded += " if each.name not in {'live_steps', 'yaml_text'}]; print(*sys.modules)"
    done = subprocess.run((sys.executable, "-c", loaded), capture_output=True, text=True, timeout=120, check=True)
    modules = set(done.stdout.split())
    assert {"fastapi", "sqlalchemy", "pydantic", "yaml", "aiohttp", "alembic"} & modules == set()
    servers = {
        "api",
        "engine",
        "front",
        "hosting",
        "invokers",
        "language",
        "operations",
        "store",
        "settings",
    }
    assert {f"flowserver.{name}" for name in servers} & modules == set()
    assert {each for each in modules if each.startswith("flowserver.machine.")} == FOLDS_OF_EVENTS


@pytest.mark.parametrize("package", PURE_PACKAGES)
def test_pure_packages_import_no_io_clock_or_randomness(package: str) -> None:
    impure = [
        f"{source.place(node)} {name}"
        for source in source_files(PACKAGE / package)
        for node, name in imported_names(source)
        if name.partition(".")[0] in IMPURE_MODULES
    ]
    assert impure == []


@pytest.mark.parametrize("package", PURE_PACKAGES)
def test_pure_packages_read_no_clock(package: str) -> None:
    readers = [
        source.place(node)
        for source in source_files(PACKAGE / package)
        for node in source.nodes
        if isinstance(node, ast.Attribute) and node.attr in CLOCK_READERS and _is_clock(node.value)
    ]
    assert readers == []


def _is_clock(value: ast.expr) -> bool:
    named = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return named in {"date", "datetime"}


def test_blocking_work_has_threads_of_its_own() -> None:
    """asyncio's default executor is one pool for all work: slow lists would delay timers there."""
    shared = {
        source.place(node)
        for source in source_files()
        for node in source.nodes
        if isinstance(node, ast.Attribute) and node.attr in ("to_thread", "run_in_executor", "set_default_executor")
        if not (node.attr == "run_in_executor" and source.name in OWN_EXECUTORS)
    }
    assert shared == set()
    first_arguments = {
        ast.unparse(node.args[0])
        for source in source_files()
        for node in source.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run_in_executor"
    }
    assert "None" not in first_arguments


def test_the_whole_schema_comes_from_one_module() -> None:
    """Elsewhere, the metadata would hold the tables that happen to be imported, and no others."""
    schema = PACKAGE / "store" / "schema"
    tables = {f"flowserver.store.schema.{file.stem}" for file in schema.glob("*tables.py")}
    tables.remove("flowserver.store.schema.all_tables")
    (whole,) = (source for source in source_files() if source.path == schema / "all_tables.py")
    assert tables <= {name for _, name in imported_names(whole)}

    taken = "flowserver.store.schema.metadata.metadata"
    takers = {source.name for source in source_files() if taken in {name for _, name in imported_names(source)}}
    own = {f"{name.replace('.', '/')}.py" for name in tables}
    assert takers - own == {"flowserver/store/schema/all_tables.py"}
