"""Checks of definitions."""

from typing import Annotated, Literal, Self

from pydantic import Field

from flowserver.analysis.rules import RULES, page_of
from flowserver.analysis.rules import Finding as RuleFinding
from flowserver.analysis.rules import PathStep as StepOfPath
from flowserver.api.rest.models.flows import DEFINITION, GivenDefinition
from flowserver.api.rest.models.shared_types import QueryParameters, RequestBody, Resource, with_examples
from flowserver.language.diagnostics import Diagnostic as Finding
from flowserver.language.diagnostics import Severity, Target


class ValidateDefinition(RequestBody):
    """A definition to check."""

    model_config = with_examples({"definition": DEFINITION})

    definition: GivenDefinition


class ValidationQuery(QueryParameters):
    """How to check a definition."""

    lenient: Annotated[
        bool | None,
        Field(
            description="Whether unknown attributes and empty ones are warnings; else they are errors. Without it, as "
            "the server's setting `lenient` says, which also holds when flows are created and changed."
        ),
    ] = None
    rules: Annotated[
        bool,
        Field(description="Whether to look also for what `flowserver prove` finds in a valid definition."),
    ] = True


class MissingTarget(Resource):
    """Something of the server that is named but does not exist."""

    model_config = with_examples({"kind": "function", "name": "shop/pay"})

    kind: Literal["flow", "function", "queue", "topic", "version", "alias"]
    name: Annotated[str, Field(description="`charge`, `shop/pay`; of a version or an alias with its flow: `etl/prod`.")]

    @classmethod
    def of(cls, target: Target | None) -> Self | None:
        """The target, if there is one."""
        return None if target is None else cls(kind=target.kind, name=target.name)


class PathStep(Resource):
    """One step of a way through a flow."""

    step: str
    line: int
    column: int
    note: Annotated[str, Field(description="How it was left, or what is true there.")]

    @classmethod
    def of(cls, step: StepOfPath) -> Self:
        """The step as the API shows it."""
        return cls(step=step.name, line=step.line, column=step.column, note=step.note)


class Diagnostic(Resource):
    """One finding in a definition. Lines and columns count from 1; the end is the first place after it."""

    model_config = with_examples(
        {
            "id": "unknown-goto",
            "severity": "error",
            "message": "there is no step `ship` in this list",
            "line": 7,
            "column": 11,
            "endLine": 7,
            "endColumn": 15,
            "hint": "did you mean `shop`?",
            "target": None,
            "page": "docs/reference/diagnostics.md",
            "path": [],
        }
    )

    id: Annotated[str, Field(description="Names the kind of finding; stable, so clients may match on it.")]
    severity: Severity
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    hint: Annotated[str | None, Field(description="What to do about it, if that can be said.")]
    target: Annotated[
        MissingTarget | None,
        Field(description="What does not exist, of findings whose id says so, such as `unknown-flow`."),
    ]
    page: Annotated[str, Field(description="The page of the project's documentation that explains it.")]
    path: Annotated[
        list[PathStep], Field(description="Of some rules a way through the flow that shows it, step by step.")
    ]

    @classmethod
    def of(cls, found: Finding) -> Self:
        """The finding with its place."""
        span = found.span
        return cls(
            id=found.id,
            severity=found.severity,
            message=found.message,
            line=span.line,
            column=span.column,
            end_line=span.end_line,
            end_column=span.end_column,
            hint=found.hint,
            target=MissingTarget.of(found.target),
            page=page_of(found.id),
            path=[PathStep.of(step) for step in found.path] if isinstance(found, RuleFinding) else [],
        )


class DefinitionReport(Resource):
    """What the check of a definition found."""

    model_config = with_examples({"valid": True, "diagnostics": []})

    valid: Annotated[
        bool,
        Field(
            description="Whether a flow can be created from it. Warnings do not prevent that, nor do findings of rules."
        ),
    ]
    diagnostics: Annotated[list[Diagnostic], Field(description="In order of place.")]

    @classmethod
    def of(cls, found: tuple[Finding, ...]) -> Self:
        """The report on a definition of which this was found."""
        valid = all(each.severity is not Severity.ERROR or each.id in RULES for each in found)
        return cls(valid=valid, diagnostics=[Diagnostic.of(each) for each in found])
