"""The rules of `flowserver prove`, for editors that explain findings."""

from functools import cache
from typing import Annotated, Self

from pydantic import Field

from flowserver.analysis.rules import RULES, page_of
from flowserver.api.rest.models.shared_types import Resource, with_examples
from flowserver.base.json_values import JsonObject
from flowserver.editing.rule_pages import rule_page
from flowserver.language.diagnostics import Severity

_RULE: JsonObject = {
    "id": "catch-never-matches",
    "severity": "error",
    "finds": "A catch rule names only errors that earlier rules name.",
    "argument": "The server takes the first rule of `catch` that names the error, or `FnF.ALL`.",
    "flawed": "version: v1\ntype: flow\n…",
    "corrected": "version: v1\ntype: flow\n…",
    "page": "docs/reference/rules.md#catch-never-matches",
}


class Rule(Resource):
    """One rule; a finding has its id."""

    model_config = with_examples(_RULE)

    id: str
    severity: Annotated[
        Severity,
        Field(description="Findings of an `error` are true in every execution that gets there; others are doubts."),
    ]
    finds: str
    argument: Annotated[str, Field(description="Why its findings are true, as Markdown.")]
    flawed: Annotated[str, Field(description="A definition that has this finding, and no other.")]
    corrected: Annotated[str, Field(description="The same without a finding.")]
    page: Annotated[str, Field(description="The page of the project's documentation that explains it.")]

    @classmethod
    def of(cls, id: str) -> Self:
        """The rule as the API shows it."""
        rule, page = RULES[id], rule_page(id)
        return cls(
            id=id,
            severity=rule.severity,
            finds=rule.finds,
            argument=page.argument,
            flawed=page.flawed,
            corrected=page.corrected,
            page=page_of(id),
        )


class RuleList(Resource):
    """All rules."""

    model_config = with_examples({"rules": [_RULE]})

    rules: list[Rule]


@cache
def rule_list() -> RuleList:
    """The rules with their pages, which are read once."""
    return RuleList(rules=[Rule.of(id) for id in RULES])
