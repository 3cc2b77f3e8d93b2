"""The text of a flow test file to its cases, or diagnostics with places: the entry of the package."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from flowserver.base.clock import parse_instant
from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.flowtests.cases import EXECUTION_NAME, STARTED_MS, Case, Expectation, Source, TestFile
from flowserver.flowtests.expectation_reading import read_expectation
from flowserver.flowtests.fields import FILE, TEST
from flowserver.flowtests.file_names import flow_name_of
from flowserver.flowtests.known_names import KnownNames
from flowserver.flowtests.mock_reading import MockReader
from flowserver.flowtests.real_calls import Callee, NotAvailable
from flowserver.flowtests.schema_reading import SchemaReader
from flowserver.flowtests.schemas import Schema
from flowserver.flowtests.simulation_reading import read_simulation
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import CheckingStopped, DefinitionRejected, Report, shown
from flowserver.language.graph import Span
from flowserver.language.nodes import ListNode, MapNode, ScalarNode, to_json
from flowserver.language.source import read_source


class Referents(Protocol):
    """What a test file names outside itself.

    The methods raise NotAvailable, those of definitions also OSError, UnicodeDecodeError and DefinitionRejected.
    """

    def of_flow(self, file: Path) -> Source:
        """The definition under test."""

    def of_sub_flow(self, file: Path) -> Source:
        """A definition that runs as a sub-flow."""

    def of_callee(self, name: str, folder: Path) -> Callee:
        """What a real call reaches."""

    def of_schema(self, document: JsonObject) -> Schema:
        """The JSON Schema; raises SchemaInvalid, too."""


_START = Span(1, 1, 1, 2)


def read_test_file(file: Path, text: str, limits: Limits, referents: Referents, work: Work | None = None) -> TestFile:
    """Read and check the text of a file; raises DefinitionRejected, which has all mistakes with their places.

    `work` counts the cost of the check and pauses it.
    """
    report = Report()
    found: TestFile | None = None
    with contextlib.suppress(CheckingStopped):
        found = _Reader(file, text, limits, referents, report, work or Work()).read()
    if found is None or report.has_errors:
        raise DefinitionRejected(report.diagnostics())
    return found


class _Reader:
    """Reads one file."""

    def __init__(self, file: Path, text: str, limits: Limits, referents: Referents, report: Report, work: Work) -> None:
        self._file = file
        self._text = text
        self._report = report
        self._limits = limits
        self._work = work
        self._reader = AttributeReader(report, limits, self._work)
        self._referents = referents
        self._schemas = SchemaReader(report, referents.of_schema)

    def read(self) -> TestFile | None:
        limit = self._limits.flow_test_bytes_max
        if (size := len(self._text.encode("utf-8", "surrogatepass"))) > limit:
            self._report.error("definition-too-large", _START, f"a file has at most {limit} bytes, this one has {size}")
            return None
        limits = replace(self._limits, definition_bytes_max=limit, definition_characters_max=4 * limit)
        root = read_source(self._text, limits, self._report, self._work, frozenset())
        attributes = self._reader.read(root, FILE)
        source = None if attributes is None else self._source(attributes, "flow", self._referents.of_flow)
        if attributes is None or source is None:
            return None
        return self._read_cases(attributes, source)

    def _read_cases(self, attributes: Attributes, source: Source) -> TestFile | None:
        mocks = MockReader(self._reader, self._sub_flow, self._callee)
        shared = mocks.read(attributes)
        given = self._input(attributes)
        started_ms = self._instant(attributes) or STARTED_MS
        name = self._reader.text(attributes, "name")
        cases: list[Case] = []
        names: dict[str, Span] = {}
        tests = attributes.get("tests", ListNode)
        if tests is not None and not tests.items:
            self._report.error("empty-list", tests.span, "`tests` needs at least one test")
        if tests is not None and len(tests.items) > self._limits.flow_tests_max:
            self._report.error("bad-value", tests.span, f"a file has at most {self._limits.flow_tests_max} tests")
            return None
        for each in self._reader.entries(attributes, "tests", TEST):
            case = self._case(each, mocks, given, started_ms, names)
            if case is not None:
                cases.append(case)
        flow_name = name or flow_name_of(source.file)
        sim = attributes.get("sim", MapNode)
        simulation = None if sim is None else read_simulation(self._reader, sim, self._schemas)
        file = TestFile(self._file, self._text, source, flow_name, shared, tuple(cases), given, started_ms, simulation)
        KnownNames(file, self._report, self._work).check()
        return file

    def _case(
        self, test: Attributes, mocks: MockReader, given: JsonObject | None, started_ms: int, names: dict[str, Span]
    ) -> Case | None:
        name = self._reader.text(test, "name")
        own = mocks.read(test)
        expect = self._expectation(test)
        execution_name = self._reader.text(test, "executionName")
        input_given = self._input(test)
        instant = self._instant(test)
        node = test.any("name")
        if name is None or node is None:
            return None
        if name in names:
            message = f"the test {shown(name)} is in line {names[name].line} already"
            self._report.error("duplicate-name", node.span, message)
            return None
        names[name] = node.span
        return Case(
            name=name,
            span=node.span,
            input=(given or {}) if input_given is None else input_given,
            started_ms=started_ms if instant is None else instant,
            execution_name=execution_name or EXECUTION_NAME,
            mocks=own,
            expect=expect,
        )

    def _expectation(self, test: Attributes) -> Expectation:
        node = test.get("expect", MapNode)
        return Expectation(test.head) if node is None else read_expectation(self._reader, node, self._schemas)

    def _input(self, attributes: Attributes) -> JsonObject | None:
        node = attributes.get("input", MapNode)
        if node is None:
            return None
        found = to_json(node)
        assert isinstance(found, dict)
        return found

    def _instant(self, attributes: Attributes) -> int | None:
        node = attributes.get("startedAt", ScalarNode)
        if node is None:
            return None
        try:
            return parse_instant(node.text)
        except ValueError:
            hint = "write an RFC 3339 instant, such as 2026-01-02T03:04:05Z"
            self._report.error("bad-value", node.span, f"{shown(node.text)} is no instant", hint)
            return None

    def _sub_flow(self, attributes: Attributes, name: str) -> Source | None:
        return self._source(attributes, name, self._referents.of_sub_flow)

    def _callee(self, attributes: Attributes, name: str) -> Callee | None:
        """What the attribute names; None if it is reported."""
        node = attributes.get(name, ScalarNode)
        if node is None:
            return None
        try:
            return self._referents.of_callee(node.text, self._file.parent)
        except NotAvailable as error:
            self._report.error("unusable-callee", node.span, str(error), error.hint)
            return None

    def _source(self, attributes: Attributes, name: str, opened: Callable[[Path], Source]) -> Source | None:
        """The definition whose file the attribute names; None if it is reported."""
        node = attributes.get(name, ScalarNode)
        if node is None:
            return None
        hint = "the name is relative to the folder of this file"
        try:
            return opened(self._file.parent / node.text)
        except NotAvailable as error:
            reason, hint = str(error), error.hint
        except OSError as error:
            reason = f"{shown(node.text)}: {error.strerror}"
        except UnicodeDecodeError:
            reason = f"{shown(node.text)} is not UTF-8 text"
        except ValueError:
            reason = f"{shown(node.text)} cannot be the name of a file"
        except DefinitionRejected as error:
            reason = f"{shown(node.text)} has errors: {error.message}"
            hint = "`flowserver validate` shows all of them"
        self._report.error("unusable-flow", node.span, reason, hint)
        return None
