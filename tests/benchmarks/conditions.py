"""The machine and versions of a measurement, for the lines above the table."""

import os
import platform
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[2]


def conditions(postgres_version: str | None, runs: int, folder: Path) -> dict[str, str]:
    """The conditions of the figures, by title; without a PostgreSQL version the database was SQLite."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "command": "python -m tests.benchmarks " + " ".join(sys.argv[1:]),
        "commit": _commit(),
        "machine": f"{os.cpu_count()} cores, shared by servers, functions and load; {_processor()}; "
        f"Linux {platform.release()}; load average before {os.getloadavg()[0]:.1f}",
        "software": f"Python {platform.python_version()}, {_database(postgres_version)}",
        "durability": f"{_durability(postgres_version)}, on {_file_system(folder)}",
        "runs": f"{runs}, each with new servers and a new database; figures are medians over the runs",
    }


def _database(postgres_version: str | None) -> str:
    return f"SQLite {sqlite3.sqlite_version}" if postgres_version is None else f"PostgreSQL {postgres_version}"


def _durability(postgres_version: str | None) -> str:
    if postgres_version is None:
        return "every commit waits for fsync (WAL, synchronous=FULL)"
    return "every commit waits for fsync (fsync=on, synchronous_commit=on)"


def _commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=10)
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short", "HEAD") or "unknown"
        return commit + (" with changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except FileNotFoundError:
        return "unknown"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _file_system(folder: Path) -> str:
    """The type of the file system that holds a folder: on tmpfs an fsync costs nothing.

    In a root of its own (chroot) no mount may hold the folder.
    """
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = {str(folder.resolve()), *map(str, folder.resolve().parents)}
    return max(((len(place), kind) for place, kind in mounts if place in above), default=(0, "an unknown file system"))[
        1
    ]
