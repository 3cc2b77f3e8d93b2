"""Validation of requests: pydantic's findings as one error of ours."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from flowserver.api.rest.models.shared_types import (
    DEFINITION_CHOICE_PATTERN,
    EXECUTION_PATTERN,
    NAME_PATTERN,
    PREFIX_PATTERN,
    QUALIFIER_PATTERN,
    TOKEN_PATTERN,
    RequestBody,
)
from flowserver.api.rest.parameters import (
    INVOCATION_PATTERN,
    QUEUE_PATTERN,
    SERVICE_PATTERN,
    VERSION_PATTERN,
)
from flowserver.base.errors import FlowServerError, InvalidArgument, MissingParameter
from flowserver.base.json_values import JsonObject
from flowserver.base.names import NAME_RULE, QUEUE_NAME_CHARACTERS_MAX
from flowserver.base.step_paths import STEP_PATTERN
from flowserver.language.diagnostics import shown

FINDINGS_MAX = 5
"""Findings that one message lists; the rest appear once these are corrected."""

PLACES = frozenset({"query", "path", "header", "body"})

KINDS = {
    "dict_type": "must be a JSON object",
    "list_type": "must be a JSON array",
    "string_type": "must be a JSON string",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
}
"""Findings of pydantic whose words name Python's types, in those of JSON."""

RULES = {
    NAME_PATTERN: NAME_RULE,
    EXECUTION_PATTERN: "must be 1-168 letters, digits, '_', '-' or ':'",
    INVOCATION_PATTERN: "must be 1-128 letters, digits, '_' or '-'",
    SERVICE_PATTERN: f"{NAME_RULE}; '.qualifier' may follow, and '-' alone stands for none",
    DEFINITION_CHOICE_PATTERN: "must be `same`, `current` or the number of a version",
    QUALIFIER_PATTERN: "must be the number of a version, the name of an alias, or LATEST",
    VERSION_PATTERN: "must be the number of a version",
    STEP_PATTERN: "must be the name of a step, or a path such as `pack[17].label`",
    QUEUE_PATTERN: f"must be 1-{QUEUE_NAME_CHARACTERS_MAX} letters, digits or '-', the first a letter or a digit",
    PREFIX_PATTERN: "must be letters, digits, '_', ':', '.', '/' or '-', or empty",
    TOKEN_PATTERN: "must be letters, digits, '_', ':', '.', '/' or '-'",
}
"""What the patterns mean, for people."""

M = TypeVar("M", bound=RequestBody)


def validated(model: type[M], values: JsonObject) -> M:
    """The values as a model; raises MissingParameter or InvalidArgument."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise explained(error.errors(include_url=False, include_input=False), _known(model)) from None


def explained(findings: Sequence[Any], known: str = "") -> FlowServerError:
    """One error that lists the findings; MissingParameter if all of them are that something is missing."""
    texts = [_sentence(each, known) for each in findings[:FINDINGS_MAX]]
    all_missing = all(each["type"] == "missing" for each in findings)
    return (MissingParameter if all_missing else InvalidArgument)("; ".join(texts))


def _sentence(finding: Mapping[str, Any], known: str) -> str:
    location = [str(part) for part in finding["loc"] if part not in PLACES]
    name = shown(".".join(location))
    if finding["type"] == "missing":
        return f"{name} is required"
    if finding["type"] == "extra_forbidden":
        return f"{name} is not known here{known}"
    return f"{name} {_rule(finding)}"


def _rule(finding: Mapping[str, Any]) -> str:
    """What the value must be; pydantic's own words are `Input should be greater than …`."""
    if finding["type"] == "string_pattern_mismatch":
        return RULES[finding["ctx"]["pattern"]]
    words = str(finding["msg"]).removeprefix("Input ").removeprefix("String ")
    return KINDS.get(finding["type"], words.replace("should", "must", 1))


def _known(model: type[RequestBody]) -> str:
    names = [f"`{field.alias or name}`" for name, field in model.model_fields.items()]
    return f" (known: {', '.join(names)})"
