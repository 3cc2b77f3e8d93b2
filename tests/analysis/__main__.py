"""`python -m tests.analysis soundness [--seed N] [--runs M] [--processes P]`, `python -m tests.analysis corpus`,
`python -m tests.analysis reachability [--seed N] [--flows M]`, `python -m tests.analysis features [--flows M]`.

`soundness` runs random flows and checks that nothing happens which `flowserver prove` calls impossible. Flow K of seed
N is the flow N + K of `random_flow`. It prints the totals, then each wrong claim with its flow and run; the exit code
is 1 if there is one.

`reachability` looks with Hypothesis for runs that do what `prove` calls possible of random flows. It prints which share
of that was reached, and why the rest was not.

`features` counts which features of the language real flows use, and lists those that the random flows never have.

`corpus` prints how many bugs of the corpus each tool finds, and the processor time that a flow takes.
"""

import argparse
import multiprocessing
import os
import sys
import time
from statistics import median

from tests.analysis.corpus import BEHAVIOURAL, CORRECT, SEEDED, entries, examine, table
from tests.analysis.features import features_of_random_flows, features_of_real_flows
from tests.analysis.reachability import NOT_FOUND, Search, search_seeds
from tests.analysis.soundness import RUNS_PER_FLOW, Tally, check_flows

FLOWS_PER_TASK = 20
WRONG_SHOWN = 20


def main() -> int:
    arguments = _arguments()
    match arguments.check:
        case "corpus":
            return _corpus()
        case "features":
            return _features(arguments)
        case "soundness":
            return _soundness(arguments)
    return _reachability(arguments)


def _features(arguments: argparse.Namespace) -> int:
    real, made = features_of_real_flows(), features_of_random_flows(range(arguments.flows))
    left = [feature for feature, _ in real.most_common() if feature not in made]
    print(f"real flows have {len(real)} features, {arguments.flows} random flows {len(made)}; these lack {len(left)}:")
    print(*(f"{feature} ({real[feature]} real flows)" for feature in left), sep="\n")
    return 0


def _reachability(arguments: argparse.Namespace) -> int:
    total = Search()
    seeds = [[seed] for seed in range(arguments.seed, arguments.seed + arguments.flows)]
    with multiprocessing.get_context("fork").Pool(arguments.processes) as pool:
        for found in pool.imap_unordered(search_seeds, seeds):
            total.add(found)
    print(f"seed {arguments.seed}, {arguments.flows} flows: {total}")
    print(*(f"{goal}: {reason}" for goal, reason in sorted(total.left.items()) if reason == NOT_FOUND), sep="\n")
    return 0


def _corpus() -> int:
    print(*table(), sep="\n")
    flows = [entry for folder in (SEEDED, BEHAVIOURAL, CORRECT) for entry in entries(folder)]
    times = sorted(examine(flow).milliseconds for flow in flows)
    middle, most = median(times), times[-1]
    print(f"test, prove and sim of {len(flows)} flows take {middle:.0f} ms each at the median, {most:.0f} at most")
    return 0


def _soundness(arguments: argparse.Namespace) -> int:
    flows = -(-arguments.runs // RUNS_PER_FLOW)
    first, last = arguments.seed, arguments.seed + flows
    parts = [range(start, min(start + FLOWS_PER_TASK, last)) for start in range(first, last, FLOWS_PER_TASK)]
    began = time.monotonic()
    total = Tally()
    with multiprocessing.get_context("fork").Pool(arguments.processes) as pool:
        for tally in pool.imap_unordered(check_flows, parts):
            total.add(tally)
    print(f"seed {arguments.seed}, {time.monotonic() - began:,.0f} s: {total}")
    print(*sorted(total.wrong)[:WRONG_SHOWN], sep="\n")
    return 1 if total.wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.analysis", description=__doc__)
    parser.add_argument("check", choices=["soundness", "corpus", "features", "reachability"])
    parser.add_argument("--seed", type=int, default=1, help="number of the first flow (default 1)")
    parser.add_argument("--runs", type=int, default=10_000, help="how many executions at least (default 10,000)")
    parser.add_argument("--flows", type=int, default=50, help="how many random flows (default 50)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="default: one per CPU")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
