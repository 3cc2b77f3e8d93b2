"""`python -m tests.chaos`: real servers under load and faults, then a check of all that they promised.

python -m tests.chaos --kills 20
python -m tests.chaos --database postgres --kills 700 --fast-start --seed 7
"""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.chaos import run_chaos
from tests.chaos.faults import KINDS
from tests.chaos.report import failure_report, slowest, summary
from tests.chaos.run import Plan

DATABASES = ("sqlite", "postgres", "postgres-standby", "postgres-patroni")


def main() -> int:
    arguments = _arguments()
    kinds = arguments.faults.split(",")
    unknown = set(kinds) - set(KINDS)
    if unknown:
        print(f"unknown faults: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
        return 2
    failed = False
    databases = [arguments.database] if arguments.database else ["sqlite", "postgres"]
    for database in databases:
        failed |= _run(database, kinds, arguments)
    return int(failed)


def _run(database: str, kinds: list[str], arguments: argparse.Namespace) -> bool:
    plan = Plan(
        seed=arguments.seed,
        kills=arguments.kills,
        kinds=kinds,
        nodes=arguments.nodes if database != "sqlite" else 1,
        pause_seconds=arguments.pause,
        minutes=arguments.minutes,
        clients=arguments.clients,
        places=arguments.places,
        processes=arguments.processes,
    )
    kept: Path | None = None
    if arguments.keep is not None:
        kept = arguments.keep / database
        kept.mkdir(parents=True)
    outcome = run_chaos(database, plan, fast_start=arguments.fast_start, kept=kept, log=_log)
    print(summary(database, outcome))
    if arguments.slowest:
        print(slowest(outcome))
    print(failure_report(outcome), end="")
    print("FAILED: see the violations" if outcome.violations else "passed: no promise was broken", flush=True)
    return bool(outcome.violations)


def _log(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Real servers, faults, a history check.")
    parser.add_argument("--database", choices=DATABASES, help="only this one (default: the first two)")
    parser.add_argument("--nodes", type=int, default=3, help="servers on PostgreSQL (default 3)")
    parser.add_argument("--kills", type=int, default=20, help="number of kill -9 per database (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of flows, inputs and faults (default 1)")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="stop after this time even without all kills")
    parser.add_argument("--faults", default=",".join(KINDS), help="kinds of faults, separated by commas (default: all)")
    parser.add_argument("--fast-start", action="store_true", help="fork servers from one that has imported everything")
    parser.add_argument("--pause", type=float, default=2.0, help="mean seconds between two faults (default 2)")
    parser.add_argument("--clients", type=int, default=10, help="executions at a time (default 10)")
    parser.add_argument("--places", type=int, default=4, help="calls a node makes at once (default 4)")
    parser.add_argument("--processes", type=int, default=1, help="processes of each node (default 1)")
    parser.add_argument("--slowest", action="store_true", help="show the executions whose calls were repeated last")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the servers' logs (and SQLite's file) there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
