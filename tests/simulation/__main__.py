"""`python -m tests.simulation [--seed N] [--executions M] [--from K] [--minutes T] [--processes P] [--only K]`.

Runs many simulated executions, or repeats one world. A world follows from the seed and its number alone. Each printed
line gives the number up to which all worlds have run, so `--from` continues a run that was interrupted. `--executions`
does not count sub-flows, nor the executions that `--from` skips.

After every commit of every world these are checked: event ids, causes and exits, the orders of calls, versions,
completed callbacks, and the view `violations`. When a world ends, its rows and histories are read back and compared. In
one world of ten, rows and histories are also folded and compared with the state in memory after every commit; in the
other worlds, for one turn in fifty.
"""

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from types import FrameType

from tests.simulation.case import CASES_PER_WORLD
from tests.simulation.report import Summary, run_in_processes, run_worlds, worlds_for

PROGRESS_SECONDS = 60


class CutShort(BaseException):
    """A signal asked the run to end."""


def main() -> int:
    arguments = _arguments()
    logging.getLogger("flowserver").setLevel(logging.ERROR)  # batches that fail and are split are expected here
    began = time.monotonic()
    total = Summary()
    signal.signal(signal.SIGTERM, _cut_short)
    try:
        if arguments.only is not None:
            world = arguments.only // CASES_PER_WORLD
            total = run_worlds(arguments.seed, [world], case_number=arguments.only)
        else:
            _run_many(arguments, began, total)
    except (CutShort, KeyboardInterrupt):
        print("cut short:", end=" ")
    _print_progress(arguments, total, began)
    if total.failure is not None:
        print(total.failure, flush=True)
    elif total.executions:
        print("no difference from the oracle, and no rule was broken", flush=True)
    return int(total.failure is not None)


def _run_many(arguments: argparse.Namespace, began: float, total: Summary) -> None:
    printed_at = began
    for _ in run_in_processes(arguments.seed, _numbers(arguments, began), arguments.processes, total.add):
        if time.monotonic() - printed_at > PROGRESS_SECONDS:
            printed_at = time.monotonic()
            _print_progress(arguments, total, began)


def _print_progress(arguments: argparse.Namespace, total: Summary, began: float) -> None:
    seconds = time.monotonic() - began
    speed = f"{total.executions / seconds * 60:,.0f} executions/minute"
    done = next(number for number in count(arguments.first) if number not in total.worlds) * CASES_PER_WORLD
    shown = "" if arguments.only is not None else f", shown: {arguments.first * CASES_PER_WORLD} to {done}"
    print(f"seed {arguments.seed}{shown}, {seconds:,.0f} s, {speed}: {total}", flush=True)


def _cut_short(_number: int, _frame: FrameType | None) -> None:
    raise CutShort


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description="Random flows on two simulated nodes over the real store, crashes at commits, an oracle.",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all random choices (default 1)")
    parser.add_argument("--executions", type=int, default=10_000, help="how many executions at least (default 10,000)")
    parser.add_argument(
        "--from",
        dest="first",
        type=_world_number,
        default=0,
        metavar="NUMBER",
        help="skip the executions before this number",
    )
    parser.add_argument("--minutes", type=float, help="run for this long; replaces --executions")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="number of processes (default: one per CPU)"
    )
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run the world of this execution again")
    return parser.parse_args()


def _world_number(execution: str) -> int:
    return int(execution) // CASES_PER_WORLD


def _numbers(arguments: argparse.Namespace, began: float) -> Iterator[int]:
    if arguments.minutes is None:
        yield from range(arguments.first, arguments.first + worlds_for(arguments.executions))
    else:
        for number in count(arguments.first):
            if time.monotonic() - began > arguments.minutes * 60:
                return
            yield number


if __name__ == "__main__":
    sys.exit(main())
