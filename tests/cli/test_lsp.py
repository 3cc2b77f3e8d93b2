"""`flowserver lsp` without what it needs; tests/lsp has the rest."""

import sys

import pytest

from flowserver.cli.exit_codes import ExitCode
from tests.cli.conftest import one_line


@pytest.mark.parametrize("package", ["pygls", "lsprotocol"])
def test_what_the_extra_brings_is_refused_without_it(run, monkeypatch, package):
    for name in [*sys.modules]:
        if name.partition(".")[0] == package or name.startswith("flowserver.lsp."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    result = run("lsp")
    assert result.exit_code == ExitCode.USAGE
    assert "pip install 'flowserver[lsp]'" in one_line(result)
