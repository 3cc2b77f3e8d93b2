"""The exit code of a server process is reported, so a node that fails while leaving is noticed."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.chaos.node import NodeArguments
from tests.chaos.starters import Starter, fast_starter, plain_starter


@pytest.mark.parametrize("starters", [plain_starter, fast_starter])
def test_a_failure_is_reported_by_its_exit_code(
    starters: Callable[[], AbstractContextManager[Starter]], tmp_path: Path
) -> None:
    arguments = NodeArguments(
        database_url=f"sqlite:///{tmp_path}/missing/flowserver.db",
        port=1,
        clock_file=str(tmp_path / "clock"),
        log_file=str(tmp_path / "log"),
        drain_seconds=1.0,
        places=1,
    )
    (tmp_path / "missing").touch()  # a file cannot be the database's folder
    with starters() as starter:
        assert starter.exit_code(starter.start(arguments)) == 1
