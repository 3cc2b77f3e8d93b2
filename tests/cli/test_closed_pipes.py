"""Commands whose output is not read to its end, such as `flowserver flows list | head -1`."""

import os
import subprocess
import sys

import pytest

from flowserver.cli.exit_codes import ExitCode

PASS = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n"
STOPS = "version: v1\ntype: flow\nsteps:\n  - {type: succeed, name: s}\n  - {type: pass, name: never}\n"


@pytest.fixture
def run_unread(server, monkeypatch):
    """Run the program with stdout, and perhaps stderr, a pipe that no process reads."""
    monkeypatch.setenv("FLOWSERVER_URL", server.url)

    def run_program(*arguments, all_unread=False):
        reader, writer = os.pipe()
        os.close(reader)
        command = [sys.executable, "-m", "flowserver", *map(str, arguments)]
        try:
            return subprocess.run(command, stdout=writer, stderr=writer if all_unread else subprocess.PIPE, text=True)
        finally:
            os.close(writer)

    return run_program


def test_everything_is_applied_though_the_output_is_not_read(run_unread, run, tmp_path):
    names = [f"unread-{number}" for number in range(4)]
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(PASS)
    applied = run_unread("apply", tmp_path)
    assert (applied.returncode, applied.stderr) == (0, "")
    assert run("flows", "list", "-o", "name").stdout.split() == names
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(STOPS)  # its warnings go to stderr
    assert run_unread("apply", tmp_path, all_unread=True).returncode == 0
    assert run("apply", tmp_path).stdout.count("unchanged") == len(names)
    (tmp_path / "wrong.yaml").write_text("version: v1")
    assert run_unread("apply", tmp_path, all_unread=True).returncode == ExitCode.FAILED


def test_a_read_ends_without_a_word(run_unread, run, tmp_path):
    (tmp_path / "listed.yaml").write_text(PASS)
    assert run("apply", tmp_path / "listed.yaml").exit_code == 0
    for output in ("name", "table", "json"):
        ended = run_unread("flows", "list", "-o", output)
        assert (ended.returncode, ended.stderr) == (ExitCode.UNREAD, "")
