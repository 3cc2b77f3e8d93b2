"""The figures as Markdown. Pure: everything that is shown is an argument."""

from collections.abc import Mapping, Sequence

from tests.benchmarks.figures import Figures, Rows
from tests.benchmarks.yardsticks import Yardstick

COLUMNS = {
    "count": "count",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "per_second": "per second",
    "cpu_ms_each": "engine CPU, ms each",
    "peak_mib": "peak memory, MiB",
    "written_kib_each": "written, KiB each",
    "grown_kib_each": "database grown, KiB each",
}
POSTGRES_COLUMNS = {
    "postgres_cpu_ms_each": "CPU, ms",
    "postgres_commits_each": "commits",
    "postgres_fsyncs_each": "fsyncs",
    "postgres_rows_each": "rows written",
    "postgres_wal_kib_each": "WAL, KiB",
}
LOAD_COLUMNS = {
    "generator_cpu_ms_each": "load generator, ms each",
    "function_cpu_ms_each": "functions, ms each",
    "requests_each": "requests each",
    "others_cores": "other processes, cores",
    "machine_speed": "processor's speed",
    "disk_speed": "disk's speed",
}
NEIGHBOUR_COLUMNS = {
    "healthz_alone_p50_ms": "/healthz alone p50, ms",
    "healthz_alone_p99_ms": "p99",
    "healthz_p50_ms": "beside p50",
    "healthz_p99_ms": "p99",
    "healthz_failed": "failed",
    "flow_alone_p50_ms": "flow alone p50, ms",
    "flow_alone_p99_ms": "p99",
    "flow_p50_ms": "beside p50",
    "flow_p99_ms": "p99",
    "flow_failed": "failed",
    "stop_ms": "stopping the attack, ms",
    "peak_mib": "peak memory, MiB",
}
HELD = (
    "Held against the best peer, this project's goals, and what its checks allow "
    "(docs/maintainers/benchmarks.md says what the workloads are). At equal speed: times better, divided by the "
    "processor's speed."
)
HELD_COLUMNS = ["workload", "what", "here", "best peer", "times better", "at equal speed", "goal", "allowed"]


def markdown(conditions: Mapping[str, str], rows: Rows, yardsticks: Sequence[Yardstick]) -> str:
    """All figures, as a section of a document."""
    held = [stick for stick in yardsticks if stick.figure in rows.get(stick.row, {})]
    parts = ["\n".join(f"- {title}: {text}" for title, text in conditions.items())]
    main = {title: figures for title, figures in rows.items() if "count" in figures}
    if main:
        parts.append(_table(["workload", *COLUMNS.values()], [_line(*row, COLUMNS) for row in main.items()]))
        parts.append(
            "CPU besides the engine's, on the same cores, and the machine's speed (1 is where the peers were measured):"
        )
        parts.append(_table(["workload", *LOAD_COLUMNS.values()], [_line(*row, LOAD_COLUMNS) for row in main.items()]))
    neighbours = {title: figures for title, figures in rows.items() if "flow_alone_p50_ms" in figures}
    if neighbours:
        lines = [_line(*row, NEIGHBOUR_COLUMNS) for row in neighbours.items()]
        parts.append(
            "`/healthz` and an execution of five calls, alone and beside an attack (tests/benchmarks/attacks.py):"
        )
        parts.append(_table(["attack", *NEIGHBOUR_COLUMNS.values()], lines))
    if held:
        parts.append(HELD)
        parts.append(_table(HELD_COLUMNS, [_compared(stick, rows[stick.row]) for stick in held]))
    if any("postgres_commits_each" in figures for figures in main.values()):
        lines = [_line(*row, POSTGRES_COLUMNS) for row in main.items()]
        parts.append("What one of them costs PostgreSQL:")
        parts.append(_table(["workload", *POSTGRES_COLUMNS.values()], lines))
    rest = _rest(rows, {(stick.row, stick.figure) for stick in held})
    return "\n\n".join([*parts, rest] if rest else parts) + "\n"


def number(value: float | None) -> str:
    """Three significant digits, or the whole number if that has more; `–` for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def _line(title: str, figures: Figures, columns: Mapping[str, str]) -> list[str]:
    return [title, *(number(figures.get(name)) for name in columns)]


def _compared(stick: Yardstick, figures: Figures) -> list[str]:
    value = figures[stick.figure]
    better, speed = stick.times_better(value), figures.get("machine_speed")
    equal = better / speed if better and speed and stick.varies_with_speed else None
    compared = (stick.peer, better, equal, stick.goal, stick.allowed)
    return [stick.row, stick.title, number(value), *map(number, compared)]


def _rest(rows: Rows, held: set[tuple[str, str]]) -> str:
    """The figures that are in no table."""
    shown = {*COLUMNS, *POSTGRES_COLUMNS, *LOAD_COLUMNS, *NEIGHBOUR_COLUMNS}
    return "\n".join(
        f"- {title}: {name.replace('_', ' ')} {number(value)}"
        for title, figures in rows.items()
        for name, value in figures.items()
        if name not in shown and (title, name) not in held
    )


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])
