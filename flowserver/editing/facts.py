"""What is known of the data of a valid definition, by the paths of its steps, in words for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

from flowserver.analysis.data_flow import DataFlow, StepFacts, data_of
from flowserver.analysis.shapes import Anything, Array, Document, Scalar, Shape, join_documents
from flowserver.flowtests.step_paths import lists_of
from flowserver.language.graph import Flow, Step, StepList

KEYS_MAX = 12
"""Keys that one list in words shows."""


@dataclass(frozen=True, slots=True)
class KnownStep:
    """A step, and what it has whenever it is entered; None for a step that never is."""

    step: Step
    facts: StepFacts | None


def known_steps(flow: Flow) -> Mapping[str, KnownStep]:
    """Every step by its path; empty if too much work would be needed."""
    data = data_of(flow)
    return {} if data is None else dict(_known("", flow.root, data))


def _known(within: str, steps: StepList, data: DataFlow) -> Iterator[tuple[str, KnownStep]]:
    known = data.lists.get(steps.list_id)
    for index, step in enumerate(steps.steps):
        path = f"{within}{step.name}"
        yield path, KnownStep(step, None if known is None else known.steps.get(index))
        for before, inner in lists_of(step):
            yield from _known(f"{path}{before}.", inner, data)


def keys_in_words(shape: Shape) -> str:
    """The keys of an object: `a`, `b`, perhaps `c`, and others."""
    if not isinstance(shape, Document):
        return kind_in_words(shape)
    sure = [f"`{key}`" for key, part in shape.parts.items() if part.is_sure]
    perhaps = [f"`{key}`" for key, part in shape.parts.items() if not part.is_sure]
    words = _cut(sure)
    if perhaps:
        words.append(f"perhaps {', '.join(_cut(perhaps))}")
    if shape.is_open:
        words.append("and others" if words else "any keys")
    return ", ".join(words) or "no keys"


def _cut(names: list[str]) -> list[str]:
    return names if len(names) <= KEYS_MAX else [*names[:KEYS_MAX], f"{len(names) - KEYS_MAX} more"]


def kind_in_words(shape: Shape) -> str:
    """What a value is."""
    match shape:
        case Anything():
            return "any value"
        case Scalar(kind=kind):
            return "null" if kind == "null" else f"a {kind}"
        case Array():
            return "a list"
        case Document():
            return "an object"


def outputs_of(facts: StepFacts) -> Document | None:
    """What a step puts out, on any of its ways."""
    outputs = [*facts.outputs.values()]
    return reduce(join_documents, outputs) if outputs else None
