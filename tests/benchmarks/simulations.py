"""`python -m tests.benchmarks.simulations [--runs N]`: processor time of simulated runs, and of whole simulations.

The examples run with their test files, N runs each; then each flow of the corpus with the defaults, as `flowserver sim`
would. A simulation includes the search for the shortest run and its story.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from flowserver.base.limits import Limits
from flowserver.flowtests.loading import Loader, files_in
from flowserver.flowtests.outcomes import Rules
from flowserver.flowtests.simulating import SimulationSettings, simulate, simulate_file
from tests.analysis.corpus import BEHAVIOURAL, CORRECT, SEEDED, entries
from tests.benchmarks.figures import percentile
from tests.examples.conftest import EXAMPLES

RULES = Rules(Limits())


def example_seconds(file: Path, runs: int) -> tuple[float, int]:
    """Processor time of so many runs, and their faults."""
    tests = Loader(RULES.limits).load(file, file.read_text("utf-8"))
    began = time.process_time()
    simulation = simulate_file(tests, RULES, SimulationSettings(runs=runs))
    return time.process_time() - began, simulation.faults.total()


def corpus_ms(folder: Path) -> list[float]:
    """Processor time of the simulation of each flow."""
    took = []
    for entry in entries(folder):
        began = time.process_time()
        simulate(entry.text)
        took.append(1000 * (time.process_time() - began))
    return took


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--corpus", type=Path, nargs="*", default=[SEEDED, BEHAVIOURAL, CORRECT])
    given = parser.parse_args(arguments)
    runs = given.runs
    for file in files_in([EXAMPLES]):
        seconds, faults = example_seconds(file, runs)
        each_ms = 1000 * seconds / runs
        print(f"{file.parent.name}: {runs} runs with {faults} faults in {seconds:.2f} s, {each_ms:.2f} ms each")
    for folder in given.corpus:
        took = corpus_ms(folder)
        middle, most = percentile(took, 0.5), max(took)
        print(f"{folder.name}: {len(took)} simulations, p50 {middle:.0f} ms, most {most:.0f} ms")


if __name__ == "__main__":
    main()
