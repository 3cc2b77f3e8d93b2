"""The machine's present speed, as parts whose times are known on the machine that measured the peers.

That was a shared machine of the same kind, whose speed varies by half within minutes. A comparison with the peers'
figures also compares machines, so both speeds are printed. The speed is measured before and after a run, which
approximates the speed in between.
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
    """A piece of work; `there` is its duration in microseconds on the machine that measured the peers."""

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
    """`machine_speed` of the processor and `disk_speed` of a commit in this folder; 1 is the speed of the machine that
    measured the peers.
    """
    speeds = [part.there / _microseconds(part.work) for part in PARTS]
    return {
        "machine_speed": math.prod(speeds) ** (1 / len(speeds)),
        "disk_speed": COMMIT_THERE / _commit_microseconds(folder / "speed.db"),
    }


def _microseconds(work: Callable[[], object]) -> float:
    """The median processor time of a few short rounds, so other work on the same cores does not count."""
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
