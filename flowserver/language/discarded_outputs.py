"""Warnings about lost data: a parallel or foreach step without outputMappings has an empty output."""

from collections.abc import Iterator

from flowserver.expressions.references import Reference, Root
from flowserver.language.diagnostics import Report, shown
from flowserver.language.graph import (
    ChoiceStep,
    Flow,
    ForeachStep,
    Mapping,
    Mappings,
    ParallelStep,
    Step,
    StepList,
    TaskStep,
)
from flowserver.language.hints import Hint
from flowserver.language.outline import ListOutline
from flowserver.language.reachability import nested_lists


def check_discarded_outputs(flow: Flow, outlines: list[ListOutline], report: Report) -> None:
    """Warn where a sibling reads `$local.key` and only a step that discards its output could have made that key.

    Silent when a sibling's output is not known from the definition, as that of a task without outputMappings.
    """
    for steps, outline in zip(flow.lists, outlines, strict=True):
        if any(_is_open(step) for step in steps.steps):
            continue
        read = _keys_read(steps, flow.output_mappings if steps is flow.root else None)
        made = {mapping.target for step in steps.steps for mapping in step.output_mappings or ()}
        for step, name in zip(steps.steps, outline.names, strict=True):
            lost = sorted(read & _discarded(step) - made)
            if lost:
                message = f"the step {shown(step.name)} has no outputMappings, so {shown(lost[0])} is discarded"
                report.warning("discarded-output", name.span, message, Hint.COLLECTED.of())


def _is_open(step: Step) -> bool:
    """Whether a step can put out keys that its definition does not name."""
    return step.output_mappings is None and isinstance(step, (TaskStep, ChoiceStep))


def _keys_read(steps: StepList, after: Mappings | None) -> set[str]:
    mappings = [mapping for step in steps.steps for mapping in step.input_mappings or ()]
    return set(_local_keys([*mappings, *(after or ())]))


def _local_keys(mappings: list[Mapping]) -> Iterator[str]:
    for mapping in mappings:
        source = mapping.source
        if isinstance(source, Reference) and source.root is Root.LOCAL and source.path.segments:
            first = source.path.segments[0]
            if isinstance(first, str):
                yield first


def _discarded(step: Step) -> set[str]:
    """The keys that the inner lists of a step make and the step drops."""
    if step.output_mappings is not None or not isinstance(step, (ParallelStep, ForeachStep)):
        return set()
    inner = [inner for nested in nested_lists(step) for inner in nested.steps]
    return {mapping.target for one in inner for mapping in one.output_mappings or ()}
