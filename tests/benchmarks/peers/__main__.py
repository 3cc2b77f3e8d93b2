"""`python -m tests.benchmarks.peers`: this server and a peer on the same machine, in the same minutes.

    (cd tests/benchmarks/peers && npm ci)
    python -m tests.benchmarks.peers
    python -m tests.benchmarks.peers --only W1,W4 --rounds 5 --partitions 2 --markdown table.md

A shared machine's speed varies by half within minutes, so figures of two days cannot be compared. Here each round runs
a workload on both servers, one right after the other, in alternating order; the result is the ratio within a round.
Both are configured for the highest durability: every step is on disk before the next one starts.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import uvloop

from tests.benchmarks.figures import Figures, Rows
from tests.benchmarks.peers.restate import running_restate
from tests.benchmarks.peers.workloads import WORKLOADS
from tests.benchmarks.running import measure
from tests.benchmarks.stage import Shape
from tests.benchmarks.workloads import Scale

SHOWN = {
    "per_second": ("per second", True),
    "p50_ms": ("p50, ms", False),
    "p99_ms": ("p99, ms", False),
    "cpu_ms_each": ("CPU each, ms", False),
    "memory_grown_mib": ("memory grown, MiB", False),
    "idle_cpu_percent": ("idle CPU, %", False),
    "restart_to_completed_seconds": ("restart to completed, s", False),
}
"""Figures of the table: their labels, and whether more is better."""

WORKLOAD_SECONDS = 180

Round = tuple[Rows, Rows]
"""The figures of this server and of the peer in one round."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parse(arguments)
    lines = ["| | | here | Restate | times better, by round | median |", "|---|---|---:|---:|---|---:|"]
    for name in given.only.split(","):
        shape = Shape(processes=given.processes)
        rounds = [_round(name, shape, given.partitions, peer_first=number % 2 == 1) for number in range(given.rounds)]
        lines += [line for title in rounds[0][0] for line in _lines(title, rounds)]
    text = "\n".join(lines) + "\n"
    if given.markdown is not None:
        given.markdown.write_text(text, "utf-8")
    print(text)
    return 0


def _round(name: str, shape: Shape, partitions: int | None, *, peer_first: bool) -> Round:
    theirs = _measure_peer(name, partitions) if peer_first else {}
    ours = measure([name], None, shape, Scale(1), 1)
    return ours, theirs or _measure_peer(name, partitions)


def _measure_peer(name: str, partitions: int | None) -> Rows:
    async def run() -> Rows:
        await restate.open()
        try:
            async with asyncio.timeout(WORKLOAD_SECONDS):
                return await WORKLOADS[name](restate)
        finally:
            await restate.close()

    with running_restate(partitions) as restate, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rows = runner.run(run())
    for title, figures in rows.items():
        shown = ", ".join(f"{key} {value:.3g}" for key, value in figures.items() if key in SHOWN)
        print(f"{title} of the peer: {shown}", file=sys.stderr, flush=True)
    return rows


def _lines(title: str, rounds: Sequence[Round]) -> list[str]:
    pairs = [(ours[title], theirs[title]) for ours, theirs in rounds]
    return [_line(title, key, pairs) for key in SHOWN if key in pairs[0][0] and key in pairs[0][1]]


def _line(title: str, key: str, pairs: Sequence[tuple[Figures, Figures]]) -> str:
    name, more_is_better = SHOWN[key]
    ratios = [ours[key] / theirs[key] if more_is_better else theirs[key] / ours[key] for ours, theirs in pairs]
    ours, theirs = (median(figures[key] for figures in side) for side in zip(*pairs, strict=True))
    rounds = " ".join(f"{ratio:.2g}" for ratio in ratios)
    return f"| {title} | {name} | {ours:.4g} | {theirs:.4g} | {rounds} | {median(ratios):.2g} |"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3, help="of every workload on both (default 3)")
    parser.add_argument("--only", metavar="NAMES", default=",".join(WORKLOADS), help="with commas")
    parser.add_argument("--processes", type=int, default=1, help="of this server (default 1)")
    parser.add_argument("--partitions", type=int, help="of Restate; as many as it likes (24), if not given")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there, too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
