"""Bugs that people make, and flows that are right; and what `test`, `prove` and `sim` with their defaults say of them.

A bug is a file with its story. Comments in it say what finds it:

    #! test               a test of the file beside it fails: `NAME.flowtest.yaml`, written from what was wanted
    #! sim: PROPERTY      simulated runs break the property
    #! nothing: REASON    nothing finds it
    ... #! RULE           at the end of a line: `prove` finds it there
    ... #~ RULE           `prove` finds something else there

seeded_bugs were written beside the rules of `prove`. behavioural_bugs come from reports of flows that did the wrong
thing, and were written before a tool had seen them; their author had read the rules of `prove`, but not those of `sim`.
Then `prove` got rules for four of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Final

from flowserver.analysis.proving import prove
from flowserver.base.limits import Limits
from flowserver.flowtests.cases import TestFile
from flowserver.flowtests.file_names import SUFFIX
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Rules, run_case
from flowserver.flowtests.simulating import Simulation, simulate, simulate_file
from flowserver.language.diagnostics import Severity

FOLDER: Final = Path(__file__).parent
SEEDED: Final = FOLDER / "seeded_bugs"
BEHAVIOURAL: Final = FOLDER / "behavioural_bugs"
CORRECT: Final = FOLDER / "correct_flows"
LIMITS: Final = Limits()

_MARK: Final = re.compile(r"^(?P<code>.*?\S)\s+#(?P<kind>[!~]) (?P<rule>\S+)$")
_HEADER: Final = re.compile(r"^#! (?P<tool>test|sim|nothing)(?:: (?P<detail>.+))?$")


@dataclass
class Found:
    """What the tools say of one flow."""

    rules: list[tuple[int, str]] = field(default_factory=list)
    """Line and rule of each finding of `prove`."""
    failed_tests: list[str] = field(default_factory=list)
    properties: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Messages of findings and broken properties that are errors."""
    warnings: set[str] = field(default_factory=set)
    """Rules and properties of the others."""
    milliseconds: float = 0
    """Processor time."""


@dataclass(frozen=True)
class Entry:
    """A flow of a folder."""

    file: Path

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.file.stem

    @property
    def text(self) -> str:
        """The definition."""
        return self.file.read_text("utf-8")

    @property
    def test_file(self) -> TestFile | None:
        """The tests beside it, if there are some."""
        file = self.file.with_name(self.name + SUFFIX)
        return Loader(LIMITS).load(file, file.read_text("utf-8")) if file.exists() else None

    def marks(self, kinds: str = "!~") -> list[tuple[int, str]]:
        """Line and rule of each mark at the end of a line."""
        lines = enumerate(self.text.splitlines(), start=1)
        found = ((number, _MARK.match(line)) for number, line in lines)
        return [(number, mark["rule"]) for number, mark in found if mark is not None and mark["kind"] in kinds]

    def said(self, tool: str) -> list[str]:
        """The details of a tool's lines: properties, or the reason that nothing finds the bug."""
        found = map(_HEADER.match, self.text.splitlines())
        return [line["detail"] or "" for line in found if line is not None and line["tool"] == tool]

    @property
    def tools(self) -> set[str]:
        """The tools that find the bug, by its marks."""
        tools = {tool for tool in ("test", "sim") if self.said(tool)}
        return tools | ({"prove"} if self.marks("!") else set())


def entries(folder: Path) -> list[Entry]:
    """The flows of a folder."""
    return [Entry(file) for file in sorted(folder.glob("*.yaml")) if not file.name.endswith(SUFFIX)]


def examine(entry: Entry) -> Found:
    """Test, prove and simulate a flow."""
    began = process_time()
    found = Found()
    for finding in prove(entry.text, LIMITS).findings:
        found.rules.append((finding.span.line, finding.id))
        _note(found, finding.id, finding.message, finding.severity)
    file = entry.test_file
    if file is not None:
        outcomes = [run_case(file, case, Rules(LIMITS)) for case in file.cases]
        found.failed_tests = [outcome.case.name for outcome in outcomes if not outcome.passed]
    for failure in _simulation(entry, file).failures:
        found.properties.append(failure.property)
        _note(found, failure.property, failure.message, failure.severity)
    found.milliseconds = (process_time() - began) * 1000
    return found


def _note(found: Found, name: str, message: str, severity: Severity) -> None:
    if severity is Severity.ERROR:
        found.errors.append(f"{name}: {message}")
    else:
        found.warnings.add(name)


def _simulation(entry: Entry, file: TestFile | None) -> Simulation:
    return simulate(entry.text, limits=LIMITS) if file is None else simulate_file(file, Rules(LIMITS))


def table() -> Iterator[str]:
    """How many bugs of each folder each tool finds, by their marks."""
    for folder in (SEEDED, BEHAVIOURAL):
        bugs = entries(folder)
        by_tool = {tool: sum(tool in bug.tools for bug in bugs) for tool in ("prove", "test", "sim")}
        found = sum(bool(bug.tools) for bug in bugs)
        counts = ", ".join(f"{tool} {count}" for tool, count in by_tool.items())
        yield f"{folder.name}: {found} of {len(bugs)} found ({counts})"
    for bug in entries(BEHAVIOURAL):
        yield from (f"  not found: {bug.name}: {reason}" for reason in bug.said("nothing"))
