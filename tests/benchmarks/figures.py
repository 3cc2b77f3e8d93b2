"""Computes figures from latencies and counters, and the medians of several runs. Pure."""

import statistics
from collections.abc import Mapping, Sequence

Figures = dict[str, float]
"""By names that contain the unit. Names that end in `_each` are per execution (or call, or completion)."""

Rows = dict[str, Figures]
"""The figures of each row of the table; a workload has one or more rows."""

MIB = 1024 * 1024


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all values does not exceed (nearest rank); 0 for none."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0.0


def latency_figures(seconds: Sequence[float]) -> Figures:
    """Median and p99 in ms."""
    return {"p50_ms": 1000 * percentile(seconds, 0.5), "p99_ms": 1000 * percentile(seconds, 0.99)}


def cost_figures(before: Mapping[str, float], after: Mapping[str, float], count: int) -> Figures:
    """The cost of `count` executions between two readings of a stage's counters."""
    grown = {name: after[name] - before[name] for name in before}
    figures = {
        "count": count,
        "per_second": count / grown["seconds"],
        "cpu_ms_each": 1000 * grown["cpu_seconds"] / count,
        "written_kib_each": grown["written_bytes"] / 1024 / count,
        "grown_kib_each": grown["size_bytes"] / 1024 / count,
        "function_cpu_ms_each": 1000 * grown["function_cpu_seconds"] / count,
        "generator_cpu_ms_each": 1000 * grown["generator_cpu_seconds"] / count,
        "others_cores": max(0.0, grown["machine_cpu_seconds"] - _ours(grown)) / grown["seconds"],
        "requests_each": grown["requests"] / count,
    }
    if "postgres_commits" in grown:
        figures |= {
            "postgres_cpu_ms_each": 1000 * grown["postgres_cpu_seconds"] / count,
            "postgres_commits_each": grown["postgres_commits"] / count,
            "postgres_fsyncs_each": grown["postgres_wal_fsyncs"] / count,
            "postgres_rows_each": grown["postgres_rows_written"] / count,
            "postgres_wal_kib_each": grown["postgres_wal_bytes"] / 1024 / count,
        }
    return figures


def _ours(grown: Mapping[str, float]) -> float:
    """Processor seconds of the benchmark and of all processes that it has started."""
    kinds = ("cpu_seconds", "postgres_cpu_seconds", "function_cpu_seconds", "generator_cpu_seconds")
    return sum(grown.get(kind, 0.0) for kind in kinds)


def medians(runs: Sequence[Rows]) -> Rows:
    """The median of every figure over the runs, which have the same rows and names."""
    return {
        title: {name: statistics.median(run[title][name] for run in runs) for name in figures}
        for title, figures in runs[0].items()
    }
