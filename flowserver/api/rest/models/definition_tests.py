"""Tests of a definition, and what has come of them."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field

from flowserver.api.rest.models.definition_checks import Diagnostic
from flowserver.api.rest.models.flows import DEFINITION, GivenDefinition, as_text
from flowserver.api.rest.models.shared_types import LIMITS, RequestBody, Resource, with_examples
from flowserver.api.rest.models.steps import Step
from flowserver.base.json_values import Json, JsonObject, json_bytes
from flowserver.flowtests.coverage import FileCoverage, percent_of
from flowserver.flowtests.coverage_points import Kind
from flowserver.flowtests.findings import Finding
from flowserver.flowtests.outcomes import Outcome
from flowserver.language.graph import Span
from flowserver.machine.state import Status
from flowserver.operations.flow_tests import TestedDefinition

_TESTS = """\
flow: order.yaml
functions: {charge: {return: {paid: true}}}
tests:
  - name: paid
    expect: {output: {paid: true}}
"""
_COUNT: JsonObject = {"reached": 0, "total": 0}
_RESULT: JsonObject = {
    "name": "paid",
    "line": 4,
    "outcome": "passed",
    "status": "Succeeded",
    "error": None,
    "cause": None,
    "failedStep": None,
    "output": {"paid": True},
    "path": ["charge"],
    "steps": [],
    "calls": 1,
    "tookSeconds": 0.0,
    "failures": [],
    "warnings": [],
}


class TestDefinition(RequestBody):
    """A definition, and the tests to run."""

    __test__ = False  # not a test of pytest's

    model_config = with_examples({"definition": DEFINITION, "tests": _TESTS})

    definition: GivenDefinition
    tests: Annotated[
        str,
        BeforeValidator(as_text, json_schema_input_type=str | JsonObject),
        Field(description="A flow test file: its text, or the document itself as a JSON object."),
    ]


class TestFinding(Resource):
    """What is wrong with a test's result, or doubtful about its mocks. Lines and columns are those of the test file."""

    __test__ = False

    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    details: Annotated[list[str], Field(description="Further differences; of a path, the lines of a diff.")]
    definition_line: Annotated[int | None, Field(description="The line of the step in the definition, if it is one.")]
    hint: str | None

    @classmethod
    def of(cls, finding: Finding) -> Self:
        """The finding as the API shows it."""
        span = finding.place.span
        return cls(
            message=finding.message,
            line=span.line,
            column=span.column,
            end_line=span.end_line,
            end_column=span.end_column,
            details=list(finding.details),
            definition_line=None if finding.definition is None else finding.definition.span.line,
            hint=finding.hint,
        )


class DefinitionTest(Resource):
    """What has come of one test."""

    model_config = with_examples(_RESULT)

    name: str
    line: Annotated[int, Field(description="Its line in the test file.")]
    outcome: Literal["passed", "failed"]
    status: Annotated[Status, Field(description="What the execution came to; `Running` if the test stopped it.")]
    error: str | None
    cause: str | None
    failed_step: Annotated[str | None, Field(description="The path of the step whose failure ended it.")]
    output: Annotated[
        JsonObject | None,
        Field(description="Null unless it succeeded. The three documents are null in a reply that would pass 4 MiB."),
    ]
    path: Annotated[list[str] | None, Field(description="The paths of the steps in the order in which they began.")]
    steps: Annotated[
        list[Step] | None, Field(description="The summary of its steps, in the order in which they were entered first.")
    ]
    calls: Annotated[int, Field(description="How many calls its steps made, with those of retries.")]
    took_seconds: Annotated[float, Field(description="Virtual time from the start to the end.")]
    failures: list[TestFinding]
    warnings: list[TestFinding]

    @classmethod
    def of(cls, outcome: Outcome) -> Self:
        """The result as the API shows it."""
        execution = outcome.record.execution
        return cls(
            name=outcome.case.name,
            line=outcome.case.span.line,
            outcome="passed" if outcome.passed else "failed",
            status=execution.status,
            error=execution.error,
            cause=execution.cause,
            failed_step=execution.failed_step,
            output=execution.output,
            path=outcome.record.entered,
            steps=[Step.of(step) for step in outcome.steps],
            calls=len(outcome.record.calls),
            took_seconds=outcome.record.took_ms / 1000,
            failures=[TestFinding.of(each) for each in outcome.failures],
            warnings=[TestFinding.of(each) for each in outcome.warnings],
        )


class CoverageCount(Resource):
    """How many of a kind the tests have reached, and how many there are."""

    reached: int
    total: int


class CoverageNote(Resource):
    """Something in a line of the definition."""

    line: int
    column: int
    what: str

    @classmethod
    def of(cls, span: Span, text: str) -> Self:
        """The note at a place."""
        return cls(line=span.line, column=span.column, what=text)


class TestCoverage(Resource):
    """What of the definition the tests have reached."""

    __test__ = False

    percent: float
    steps: CoverageCount
    options: CoverageCount
    retries: CoverageCount
    catches: CoverageCount
    not_reached: list[CoverageNote]
    nulls: Annotated[
        list[CoverageNote], Field(description="Mappings whose source was not found, so that they gave null.")
    ]

    @classmethod
    def of(cls, measured: FileCoverage) -> Self:
        """The coverage as the API shows it."""
        counts: dict[str, Any] = {
            str(kind): CoverageCount(reached=reached, total=total)
            for kind in Kind
            for reached, total in [measured.reached(kind)]
        }
        missed = [CoverageNote.of(point.span, point.title) for point, count in measured.counts if not count]
        nulls = [CoverageNote.of(span, text) for span, text in measured.nulls]
        return cls(percent=round(percent_of([measured]), 2), not_reached=missed, nulls=nulls, **counts)


class DefinitionTestReport(Resource):
    """What has come of all tests."""

    model_config = with_examples(
        {
            "passed": True,
            "mistakes": [],
            "tests": [_RESULT],
            "warnings": [],
            "coverage": {
                "percent": 100.0,
                "steps": {"reached": 1, "total": 1},
                "options": _COUNT,
                "retries": _COUNT,
                "catches": _COUNT,
                "notReached": [],
                "nulls": [],
            },
        }
    )

    passed: Annotated[bool, Field(description="Whether the test file has no mistakes, and all tests pass.")]
    mistakes: Annotated[list[Diagnostic], Field(description="What is wrong with the test file, in order of place.")]
    tests: list[DefinitionTest]
    warnings: Annotated[list[TestFinding], Field(description="Mocks of the file that no test uses.")]
    coverage: Annotated[TestCoverage | None, Field(description="Null if the test file has mistakes.")]

    @staticmethod
    def parts_of(tested: TestedDefinition) -> dict[str, Json | Iterator[Json]]:
        """The fields, element by element; large documents are left out of the last tests."""
        coverage = None if tested.coverage is None else TestCoverage.of(tested.coverage).model_dump()
        return {
            "passed": not tested.mistakes and all(outcome.passed for outcome in tested.outcomes),
            "mistakes": (Diagnostic.of(each).model_dump() for each in tested.mistakes),
            "tests": _shown(tested.outcomes),
            "warnings": (TestFinding.of(each).model_dump() for each in tested.warnings),
            "coverage": coverage,
        }


_LARGE = ("output", "path", "steps")


def _shown(outcomes: tuple[Outcome, ...]) -> Iterator[Json]:
    left = LIMITS.page_bytes_max
    for outcome in outcomes:
        shown = DefinitionTest.of(outcome).model_dump()
        left -= json_bytes({name: shown[name] for name in _LARGE})
        yield shown if left >= 0 else {**shown, **dict.fromkeys(_LARGE)}
