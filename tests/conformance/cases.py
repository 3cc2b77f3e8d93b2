"""Loads the conformance cases; README.md describes them."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

FOLDER = Path(__file__).parent
LONG_TEXT = "<40000 characters>"


@dataclass(frozen=True)
class Reply:
    """One answer of a function, flow or action: a result, or an error's name and cause."""

    returns: Any = None
    raises: str | None = None
    cause: str = ""
    after_seconds: int = 0


@dataclass(frozen=True)
class FlowCase:
    """A flow and its expected outcome: `refused` names a diagnostic, else `expect` describes the execution."""

    name: str
    about: str
    rests_on: Literal["doc", "example", "inferred"]
    flow: str
    input: dict[str, Any] = field(default_factory=dict)
    replies: dict[str, tuple[Reply, ...]] = field(default_factory=dict)
    limits: Literal["default", "cloud"] = "default"
    refused: str | None = None
    expect: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ConditionCase:
    """A condition, the input of the choice step, and whether the option is taken."""

    condition: str
    input: Any
    taken: bool

    def __str__(self) -> str:
        return self.condition


@cache
def flow_cases() -> tuple[FlowCase, ...]:
    """All flows, in the order of the file."""
    cases = _lengthened(yaml.safe_load((FOLDER / "flows.yaml").read_text("utf-8")))
    return tuple(_flow_case(name, case) for name, case in cases.items())


def _flow_case(name: str, case: dict[str, Any]) -> FlowCase:
    replies = {
        callee: tuple(Reply(**answer) for answer in answers) for callee, answers in case.pop("replies", {}).items()
    }
    return FlowCase(name=name, replies=replies, **case)


def _lengthened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lengthened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_lengthened(item) for item in value]
    return "x" * 40_000 if value == LONG_TEXT else value


@cache
def condition_cases() -> tuple[ConditionCase, ...]:
    """All conditions, in the order of the file."""
    topics = yaml.safe_load((FOLDER / "conditions.yaml").read_text("utf-8"))
    return tuple(ConditionCase(*row) for rows in topics.values() for row in rows)
