"""How fast the machine is at the moment, in parts whose figures are known from where the peers were measured.

That was a machine of the same kind, shared as well, whose speed varies by half within minutes. So a comparison with
the peers' figures is one of machines, too, unless both machines' speed is told. It is taken before and after a run, so
it tells roughly how fast the machine was in between.
"""

import json
import math
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from timeit import repeat

import msgspec

from tests.benchmarks.figures import Figures

SMALL = {"Name": "run-000123", "Status": "Succeeded", "Output": '{"ok":true}', "FlowName": "calls", "amount": 42}
LARGE = json.dumps([SMALL] * 91)
COMMITS = 200


@dataclass(frozen=True)
class Part:
    """A piece of work; `there` is how many microseconds it took where the peers were measured."""

    name: str
    there: float
    work: Callable[[], object]


PARTS = (
    Part("json_dumps", 2.4, lambda: json.dumps(SMALL)),
    Part("json_loads", 86, lambda: json.loads(LARGE)),
    Part("msgspec_loads", 34, lambda: msgspec.json.decode(LARGE)),
)

COMMIT_THERE = 1e6 / 7_900
"""One row a commit in SQLite, WAL with full fsync, in microseconds."""


def machine_figures(folder: Path) -> Figures:
    """`machine_speed` of the processor and `disk_speed` of a commit in this folder; 1 is as where the peers ran."""
    speeds = [part.there / _microseconds(part.work) for part in PARTS]
    return {
        "machine_speed": math.prod(speeds) ** (1 / len(speeds)),
        "disk_speed": COMMIT_THERE / _commit_microseconds(folder / "speed.db"),
    }


def _microseconds(work: Callable[[], object]) -> float:
    """Of processor time, so that others' work on the same cores does not count: the median of a few short rounds."""
    once = max(min(repeat(work, number=3, repeat=3, timer=time.process_time)) / 3, 1e-7)
    number = max(1, int(0.02 / once))
    return 1e6 * sorted(repeat(work, number=number, repeat=5, timer=time.process_time))[2] / number


def _commit_microseconds(file: Path) -> float:
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (text)")
        began = time.perf_counter()
        for _ in range(COMMITS):
            connection.execute("INSERT INTO rows VALUES (?)", ("x" * 100,))
        return 1e6 * (time.perf_counter() - began) / COMMITS
    finally:
        connection.close()
        for each in file.parent.glob(f"{file.name}*"):
            each.unlink()
