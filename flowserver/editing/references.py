"""What is known of the data that a reference or a path in a definition reads."""

from typing import Final

from flowserver.analysis.data_flow import ERROR, context_of, resolve
from flowserver.analysis.shapes import Presence, Shape, look_up
from flowserver.editing.facts import KnownStep, kind_in_words
from flowserver.editing.files import Definition
from flowserver.editing.grammar import is_step
from flowserver.editing.outline import StepEntry
from flowserver.editing.tree import Spot
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.paths import compile_path
from flowserver.expressions.references import Root, compile_source

BY_PATH: Final = frozenset({"collection", "duration", "timestamp", "serviceParams"})
"""Attributes whose values are paths into the step's input, or hold such."""

MAPPINGS: Final = ("inputMappings", "outputMappings", "errorMappings")

_IN_WORDS: Final = {
    Presence.ALWAYS: "always there",
    Presence.NEVER: "never there",
    Presence.SOMETIMES: "there on some ways only",
    Presence.UNKNOWN: "there if it comes from outside: from the execution's input, a function or a report",
}
assert set(_IN_WORDS) == set(Presence)


def step_around(file: Definition, spot: Spot) -> StepEntry | None:
    """The step that a value is in."""
    for each in (spot, *spot.ancestors()):
        if is_step(each.kind):
            return file.outline.by_node(each.node)
    return None


def list_around(spot: Spot) -> str:
    """Which mapping list of the step, or of the flow, a value is in; "" for none."""
    for each in (spot, *spot.ancestors()):
        if each.attribute in MAPPINGS:
            return each.attribute
    return ""


def is_by_path(spot: Spot) -> bool:
    """Whether a value is a path into the step's input, or could be one."""
    return any(each.attribute in BY_PATH for each in (spot, *spot.ancestors()) if not is_step(each.kind))


def roots_of(known: KnownStep, mapping_list: str) -> dict[Root, Shape]:
    """What `$input`, `$local` and `$context` are in a mapping list of a step."""
    facts = known.facts
    if facts is None:
        return {}
    context = context_of(known.step)
    if mapping_list == "inputMappings":
        return {Root.INPUT: facts.outer, Root.LOCAL: facts.local, Root.CONTEXT: context}
    local: Shape = ERROR if mapping_list == "errorMappings" else facts.result
    return {Root.INPUT: facts.input, Root.LOCAL: local, Root.CONTEXT: context}


def source_in_words(known: KnownStep, mapping_list: str, text: str) -> str | None:
    """What the source of a mapping reads; None for a constant, and if nothing is known."""
    roots = roots_of(known, mapping_list)
    try:
        source = compile_source(text)
    except ExpressionError:
        return None
    if not roots or not text.startswith("$"):
        return None
    found = resolve(source, roots[Root.INPUT], roots[Root.LOCAL], roots[Root.CONTEXT])
    return _in_words(*found)


def path_in_words(known: KnownStep, text: str) -> str | None:
    """What a path into a step's input finds; None if nothing is known."""
    try:
        path = compile_path(text)
    except ExpressionError:
        return None
    return None if known.facts is None else _in_words(*look_up(known.facts.input, path.segments))


def _in_words(presence: Presence, shape: Shape) -> str:
    words = _IN_WORDS[presence]
    return words if presence in (Presence.NEVER, Presence.UNKNOWN) else f"{words}: {kind_in_words(shape)}"
