"""The pytest plugin: `*.flowtest.yaml` files in the folders that pytest collects are tests.

Every pytest run of an environment with flowserver loads this module, so the rest is loaded with the first such file.
"""

from pathlib import Path
from typing import Any, Final

from flowserver.base.lazy_import import load
from flowserver.flowtests.file_names import SUFFIX

_FILE: Final = "flowserver.cli.pytest_items:FlowTestFile"


def pytest_collect_file(file_path: Path, parent: Any) -> Any:
    """The tests of a flow test file."""
    return load(_FILE).from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None
