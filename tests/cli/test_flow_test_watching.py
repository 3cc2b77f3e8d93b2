"""`flowserver test --watch` in a process of its own, by its output: what changes run again, and how it ends."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import PATIENCE_SECONDS
from tests.support.terminal import CTRL_C, Terminal

FLOW = "version: v1\ntype: flow\nsteps:\n  - {{type: fail, name: Stop, error: {error}}}\n"
TESTS = "flow: {flow}.yaml\ntests:\n  - {{name: good, expect: {{error: Broken}}}}\n"
PROGRAM = """\
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from flowserver.cli.main import app
app(sys.argv[1:], prog_name="flowserver")
"""
"""Tests in the background of a shell ignore SIGINT, and so would their processes."""


class Watching:
    """The command, whose two outputs come in one stream."""

    def __init__(self, folder: Path, *options: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FLOWSERVER_")}
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", PROGRAM, "test", "--watch", *options],
            cwd=folder,
            env=environment | {"PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._guard = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        self._guard.start()
        self._is_stopped = False

    def run(self, words: str = "") -> list[str]:
        """The lines of the next run that has a line with these words, up to the line that says what is watched.

        A file is written in two steps, and there may be a run after the first.
        """
        assert self.process.stdout is not None
        all_lines: list[str] = []
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            all_lines.append(line)
            if line.startswith("watching "):
                if any(words in each for each in lines):
                    return lines
                lines = []
        raise AssertionError("the command has ended:\n" + "".join(all_lines))

    def stop(self) -> int:
        """Press Ctrl-C; returns the exit code."""
        self._is_stopped = True
        self.process.send_signal(signal.SIGINT)
        return self.close()

    def close(self) -> int:
        """End it, if it has not ended; returns the exit code."""
        if self.process.poll() is None and not self._is_stopped:
            self.process.kill()
        self._guard.cancel()
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(FLOW.format(error="Broken"))
        (tmp_path / f"{name}.flowtest.yaml").write_text(TESTS.format(flow=name))
    return tmp_path


@pytest.fixture
def watching(folder: Path, request: pytest.FixtureRequest) -> Iterator[Watching]:
    running = Watching(folder, *getattr(request, "param", ()))
    yield running
    running.close()


def files_in(lines: list[str]) -> list[str]:
    return [line for line in lines if line.endswith(".flowtest.yaml") and not line.startswith("changed")]


def test_what_a_change_touches_runs_again(watching: Watching, folder: Path) -> None:
    first = watching.run()
    assert files_in(first) == ["one.flowtest.yaml", "two.flowtest.yaml"]
    assert first[-1] == "watching 2 test files; Ctrl-C ends"

    (folder / "one.yaml").write_text(FLOW.format(error="Other"))
    changed, *lines = watching.run("✘")
    assert changed == "changed: one.yaml"
    assert files_in(lines) == ["one.flowtest.yaml"]
    assert "  ✘ good  0 calls, 0s of virtual time" in lines

    (folder / "two.flowtest.yaml").write_text("flow: two.yaml\ntests: [{nmae: a}]\n")
    assert watching.run("unknown-attribute")[0] == "changed: two.flowtest.yaml"

    (folder / "two.flowtest.yaml").write_text("flow: three.yaml\ntests: [{name: a, expect: {error: Last}}]\n")
    watching.run("three.yaml`: No such file or directory")
    (folder / "three.yaml").write_text(FLOW.format(error="Last"))
    watching.run("  ✔ a  0 calls, 0s of virtual time")
    assert watching.stop() == 130


def test_test_files_come_and_go(watching: Watching, folder: Path) -> None:
    watching.run()
    (folder / "more").mkdir()
    (folder / "more" / "new.yaml").write_text(FLOW.format(error="Broken"))
    (folder / "more" / "new.flowtest.yaml").write_text(TESTS.format(flow="new"))
    lines = watching.run("  ✔ good")
    assert files_in(lines) == ["more/new.flowtest.yaml"]
    assert lines[-1] == "watching 3 test files; Ctrl-C ends"
    (folder / "more" / "new.yaml").write_text(FLOW.format(error="Another"))
    assert watching.run("✘")[0] == "changed: more/new.yaml"
    (folder / "one.flowtest.yaml").unlink()
    assert watching.run("watching 2 test files; Ctrl-C ends")[0] == "gone: one.flowtest.yaml"


@pytest.mark.parametrize("watching", [("--coverage", "--fail-under", "100", "--junitxml", "report.xml")], indirect=True)
def test_with_coverage_all_tests_run_again(watching: Watching, folder: Path) -> None:
    watching.run("one.yaml  1/1")
    (folder / "two.yaml").write_text(FLOW.format(error="Broken") + "  - {type: pass, name: p}\n")
    lines = watching.run("66.7 %")
    assert files_in(lines) == ["one.flowtest.yaml", "two.flowtest.yaml"]
    assert "flowserver: the coverage is 66.7 %, less than 100 %" in lines
    assert (folder / "report.xml").read_text().count("<testsuite ") == 2


def test_a_changed_handler_is_loaded_again(folder: Path) -> None:
    (folder / "one.yaml").write_text(
        "version: v1\ntype: flow\nsteps: [{type: task, name: c, resourceArn: 'acs:fc:::functions/f'}]\n"
    )
    (folder / "h.py").write_text("def f(event, context):\n    return {'a': 1}\n")
    (folder / "one.flowtest.yaml").write_text(
        "flow: one.yaml\nfunctions: {f: {real: 'h.py:f'}}\ntests: [{name: called, expect: {output: {a: 1}}}]\n"
    )
    running = Watching(folder, "one.flowtest.yaml")
    running.run("  ✔ called  1 call, 0s of virtual time")
    (folder / "h.py").write_text("def f(event, context):\n    return {'a': 1000}\n")
    running.run("  ✘ called  1 call, 0s of virtual time")
    assert running.stop() == 130


def test_a_terminal_is_cleared(folder: Path) -> None:
    with Terminal(["test", "--watch", str(folder)], dict(os.environ)) as terminal:
        terminal.read_until("watching 2 test files; Ctrl-C ends")
        assert terminal.clears == 0
        (folder / "one.yaml").write_text(FLOW.format(error="Other"))
        terminal.read_until("1 failed")
        assert terminal.clears >= 1
        terminal.press(CTRL_C)
        assert terminal.read_to_the_end() == 130


def test_it_is_for_people(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    refused = run("test", "--watch", "-o", "json")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "flowserver: --watch shows tests to people; leave out `-o json`\n",
    )
    assert run("test", "--watch", "more").exit_code == 3
