"""Coverage as an LCOV tracefile, which CI servers and editors read."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from flowserver.flowtests.coverage import FileCoverage
from flowserver.flowtests.coverage_points import Kind


def lcov(files: Iterable[FileCoverage]) -> str:
    """A line for each step, option, retry policy and catch rule; those of one step are branches of one block."""
    return "".join(f"{line}\n" for file in files for line in _of_file(file))


def _of_file(file: FileCoverage) -> Iterator[str]:
    yield "TN:"
    yield f"SF:{file.source.file}"
    branches = [(point, count) for point, count in file.counts if point.kind is not Kind.STEP]
    branches.sort(key=lambda each: (each[0].step.span.line, each[0].step.span.column))
    for block, (_, group) in enumerate(groupby(branches, key=lambda each: id(each[0].step))):
        for branch, (point, count) in enumerate(group):
            yield f"BRDA:{point.span.line},{block},{branch},{count}"
    yield f"BRF:{len(branches)}"
    yield f"BRH:{sum(count > 0 for _, count in branches)}"
    lines: dict[int, int] = {}
    for point, count in file.counts:
        if point.kind is Kind.STEP:
            lines[point.span.line] = max(count, lines.get(point.span.line, 0))
    for line, count in sorted(lines.items()):
        yield f"DA:{line},{count}"
    yield f"LF:{len(lines)}"
    yield f"LH:{sum(count > 0 for count in lines.values())}"
    yield "end_of_record"
