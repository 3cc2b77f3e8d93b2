"""`python -m tests.simulation [--seed N] [--executions M] [--minutes T] [--only K]`: many executions, or one again."""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import count

from tests.simulation.report import run_cases


def main() -> int:
    arguments = _arguments()
    began = time.monotonic()
    summary = run_cases(arguments.seed, _numbers(arguments, began))
    seconds = time.monotonic() - began
    print(f"seed {arguments.seed}: {summary}; {summary.executions / seconds * 60:,.0f} executions/minute")
    if summary.failure is not None:
        print(summary.failure)
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description="Random flows, disorder, an oracle."
    )
    parser.add_argument("--seed", type=int, default=1, help="what everything follows from (default 1)")
    parser.add_argument("--executions", type=int, default=10_000, help="how many (default 10,000)")
    parser.add_argument("--minutes", type=float, help="for how long, instead of how many")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run this one again")
    return parser.parse_args()


def _numbers(arguments: argparse.Namespace, began: float) -> Iterator[int]:
    if arguments.only is not None:
        yield arguments.only
    elif arguments.minutes is None:
        yield from range(arguments.executions)
    else:
        for number in count():
            if time.monotonic() - began > arguments.minutes * 60:
                return
            yield number


if __name__ == "__main__":
    sys.exit(main())
