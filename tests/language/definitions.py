"""Short ways to write definitions in tests and to describe findings."""

from flowserver.base.limits import Limits
from flowserver.language.diagnostics import DefinitionRejected, Diagnostic
from flowserver.language.graph import Flow, Step
from flowserver.language.parser import parse

HEADER = "version: v1\ntype: flow\nsteps:\n"
LIMITS = Limits()


def diagnostics_of(text: str, limits: Limits = LIMITS, *, allow_ref_tags: bool = False) -> tuple[Diagnostic, ...]:
    """All findings in a text, valid or not."""
    try:
        return parse(text, limits, allow_ref_tags=allow_ref_tags).warnings
    except DefinitionRejected as rejected:
        return rejected.diagnostics


def ids_of(text: str, limits: Limits = LIMITS) -> list[str]:
    """The ids of all findings, in order of position."""
    return [diagnostic.id for diagnostic in diagnostics_of(text, limits)]


def flow_of(text: str, limits: Limits = LIMITS, *, allow_ref_tags: bool = False) -> Flow:
    """The graph of a valid definition."""
    return parse(text, limits, allow_ref_tags=allow_ref_tags).flow


def step_of(text: str, *, allow_ref_tags: bool = False) -> Step:
    """The first step of a valid flow that consists of the steps in `text`."""
    return flow_of(HEADER + text, allow_ref_tags=allow_ref_tags).root.steps[0]
