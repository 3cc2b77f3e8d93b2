"""`python -m tests.benchmarks.flow_tests [PATH…]`: how long a case of a flow test takes, and the command around it.

A case is a run in virtual time with its checks, as `flowserver test` shows its time; reading the files is not in it.
The command is a process from its start to its end. By default the tests of the examples run.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from flowserver.base.limits import Limits
from flowserver.flowtests.coverage import Coverage
from flowserver.flowtests.loading import Loader, files_in
from flowserver.flowtests.outcomes import Rules, run_case
from tests.benchmarks.figures import percentile
from tests.examples.conftest import EXAMPLES


def case_ms(paths: Sequence[Path], rounds: int, *, is_measured: bool) -> list[float]:
    """What each case took in each round, in ms."""
    limits = Limits()
    loader = Loader(limits)
    files = [loader.load(file, file.read_text("utf-8")) for file in files_in(paths)]
    took = []
    for _ in range(rounds):
        coverage = Coverage(limits)
        observe = coverage.observe if is_measured else None
        took += [1000 * run_case(file, case, Rules(limits), observe).seconds for file in files for case in file.cases]
    return took


def command_seconds(paths: Sequence[Path], rounds: int) -> float:
    """The median of whole commands."""
    command = [sys.executable, "-m", "flowserver", "test", *map(str, paths)]
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[EXAMPLES])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--commands", type=int, default=5)
    given = parser.parse_args(arguments)
    for title, is_measured in (("a case", False), ("a case, with coverage", True)):
        took = sorted(case_ms(given.paths, given.rounds, is_measured=is_measured))
        low, middle, high = took[0], percentile(took, 0.5), percentile(took, 0.99)
        print(f"{title}: p50 {middle:.3f} ms, p99 {high:.3f} ms, fastest {low:.3f} ms; {len(took)} runs")
    cases = len(took) // given.rounds
    print(f"the command, {cases} cases: {command_seconds(given.paths, given.commands):.2f} s")


if __name__ == "__main__":
    main()
