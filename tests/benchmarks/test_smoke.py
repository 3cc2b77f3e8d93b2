"""The benchmarks' command works: every workload runs, and the table has its rows. No speed is asserted."""

import json
import re
import sys
from pathlib import Path

import pytest

import flowserver
from tests.benchmarks import calls, flow_tests, pairs, simulations, turns
from tests.benchmarks.__main__ import main
from tests.benchmarks.attacks import ATTACKS
from tests.benchmarks.figures import cost_figures, latency_figures, medians, percentile
from tests.benchmarks.running import CHECKS, NEIGHBOURS, SERVICES, WORKLOADS, named
from tests.benchmarks.table import HELD_COLUMNS, _compared, number
from tests.benchmarks.timers import lateness_figures
from tests.benchmarks.yardsticks import YARDSTICKS, Yardstick


@pytest.mark.parametrize("names", [tuple(WORKLOADS), pytest.param(tuple(CHECKS), marks=pytest.mark.slow)])
def test_every_workload_has_its_rows(
    names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "table.md"
    arguments = ["--only", ",".join(names), "--quick", "--scale", "0.004", "--markdown", str(file)]
    assert main(arguments) == 0
    text = file.read_text()
    for title in ("date", "commit", "machine", "software", "durability", "runs"):
        assert f"- {title}: " in text
    held = [stick for stick in YARDSTICKS if stick.row.split()[0] in names]
    assert held
    for stick in held:
        assert f"\n| {stick.row} | {stick.title} |" in text
    assert capsys.readouterr().out == f"{text}\n"


def test_the_services_have_their_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", ",".join(SERVICES), "--quick", "--scale", "0.004"]) == 0
    text = capsys.readouterr().out
    for row in ("queue sent", "queue received", "queue deleted", "long poll", "tasks", "command line"):
        assert f"\n| {row} | " in text or f"\n- {row}: " in text


def test_two_servers_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The other server runs the code of its own checkout, although both start in this folder."""
    pairs.main([str(_checkout(tmp_path)), "--slices", "1", "--only", "W2,W4"])
    lines = capsys.readouterr().out.splitlines()
    assert (tmp_path / "imported").exists()
    assert [line.partition("rate")[0].strip() for line in lines] == ["W2", "W4 suspended", "W4 completed"]
    assert all(", CPU " in line and "; here " in line and ", there " in line for line in lines)


def _checkout(folder: Path) -> Path:
    """A checkout whose program is this one's and leaves a file when it is imported."""
    package, python = folder / "flowserver", folder / ".venv/bin/python"
    package.mkdir()
    real = Path(flowserver.__file__)
    lines = (
        "import pathlib",
        f"pathlib.Path({str(folder / 'imported')!r}).touch()",
        f"__path__ = [{str(real.parent)!r}]",
        real.read_text(),
    )
    (package / "__init__.py").write_text("\n".join(lines))
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return folder


def test_turns_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    turns.main(["--together", "2", "--rounds", "3"])
    assert re.match(r"2 together: \d+\.\d{3} ms of processor time", capsys.readouterr().out)


def test_simulations_are_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text("version: v1\ntype: flow\nsteps: [{type: pass, name: p}]\n")
    simulations.main(["--runs", "2", "--corpus", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "\nsaga: 2 runs with " in shown
    assert f"\n{tmp_path.name}: 1 simulations, p50 " in shown


def test_flow_tests_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    flow_tests.main(["--rounds", "1", "--commands", "1"])
    shown = capsys.readouterr().out
    assert re.match(r"a case: p50 \d+\.\d{3} ms, p99 \d+\.\d{3} ms, ", shown)
    assert re.search(r"the command, 12 cases: \d+\.\d\d s", shown)


@pytest.mark.slow
def test_neighbours_have_their_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """One of each kind: connections, streams, definitions, pages, and a flow with a function."""
    names = ("half-sent", "unread-streams", "aliases", "pages", "trickle")
    assert main(["--only", ",".join(f"neighbour-{name}" for name in names), "--quick", "--scale", "0.004"]) == 0
    text = capsys.readouterr().out
    for name in names:
        assert f"\n| neighbour of {name} | " in text


def test_neighbours_names_every_attack() -> None:
    assert named("W1,neighbours") == ["W1", *NEIGHBOURS]
    assert list(NEIGHBOURS) == [f"neighbour-{name}" for name in ATTACKS]


def test_clients_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    calls.main(["--calls", "20", "--in-flight", "2"])
    figures = json.loads(capsys.readouterr().out)
    for client in ("invoker", "aiohttp session", "httpx"):
        assert figures[client]["process_cpu_us_per_call"] > 0
    assert figures["invoker"]["times_the_invoker"] == 1


def test_unknown_workloads_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "W1,W9"]) == 2
    assert "unknown workloads: W9; there are W1, W2" in capsys.readouterr().err


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(value) for value in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7
    assert percentile([], 0.5) == 0
    assert latency_figures([0.002, 0.001, 0.004]) == {"p50_ms": 2, "p99_ms": 4}


def test_costs_are_growth_for_each() -> None:
    names = ("seconds", "cpu_seconds", "written_bytes", "size_bytes", "function_cpu_seconds", "generator_cpu_seconds",
             "machine_cpu_seconds", "requests")  # fmt: skip
    before = dict.fromkeys(names, 1.0)
    after = dict.fromkeys(names, 3.0)
    figures = cost_figures(before, after, 4)
    assert figures["per_second"] == 2
    assert figures["cpu_ms_each"] == 500
    assert figures["written_kib_each"] == 0.5 / 1024
    assert figures["others_cores"] == 0, "a coarse clock may be behind"


def test_medians_are_taken_figure_by_figure() -> None:
    runs = [{"W1": {"a": 1.0, "b": 9.0}}, {"W1": {"a": 5.0, "b": 2.0}}, {"W1": {"a": 2.0, "b": 3.0}}]
    assert medians(runs) == {"W1": {"a": 2.0, "b": 3.0}}


def test_lateness_shows_order_and_loss() -> None:
    due = {"a": 1_000, "b": 1_100, "c": 1_200, "d": 1_300}
    figures = lateness_figures(due, {"a": 1_010, "b": 1_250, "c": 1_205, "before": 5})
    assert figures["timers"] == 4
    assert figures["not_fired"] == 1
    assert figures["late_max_ms"] == 150
    assert figures["early_max_ms"] == 0
    assert figures["spread_ms"] == 240
    assert figures["out_of_order_ms"] == 45


@pytest.mark.parametrize(
    ("figure", "value", "better", "equal"),
    [
        ("per_second", 300.0, "3", "6"),
        ("p50_ms", 25.0, "4", "8"),
        ("cpu_ms_each", 50.0, "2", "4"),
        ("restart_to_completed_seconds", 200.0, "0.5", "1"),
        ("memory_grown_mib", 50.0, "2", "–"),
        ("idle_cpu_percent", 25.0, "4", "–"),
        ("cpu_ms_ratio", 10.0, "10", "–"),
        ("written_kib_ratio", 10.0, "10", "–"),
    ],
)
def test_times_and_rates_are_compared_at_equal_speed(figure: str, value: float, better: str, equal: str) -> None:
    """A machine half as fast would double a time; memory and ratios have no speed."""
    stick = Yardstick("W1", figure, "it", peer=100, goal=7, more_is_better=figure == "per_second")
    cells = dict(zip(HELD_COLUMNS, _compared(stick, {figure: value, "machine_speed": 0.5}), strict=True))
    assert (cells["here"], cells["best peer"], cells["goal"]) == (number(value), "100", "7")
    assert (cells["times better"], cells["at equal speed"]) == (better, equal)
    unknown = dict(zip(HELD_COLUMNS, _compared(stick, {figure: value}), strict=True))
    assert (unknown["times better"], unknown["at equal speed"]) == (better, "–")
