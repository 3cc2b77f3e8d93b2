"""Warnings about task tokens: `$context.task.token` in a step that has none, where it finds nothing."""

from flowserver.expressions.references import Reference, Root
from flowserver.language.diagnostics import Report, shown
from flowserver.language.graph import Flow, Mapping, Pattern, Step, TaskStep
from flowserver.language.hints import Hint
from flowserver.language.outline import ListOutline

_TOKEN = ("task", "token")


def check_task_tokens(flow: Flow, outlines: list[ListOutline], report: Report) -> None:
    """Warn of every step that does not wait for a callback and has a mapping that reads the task token."""
    for steps, outline in zip(flow.lists, outlines, strict=True):
        for step, name in zip(steps.steps, outline.names, strict=True):
            if not _waits_for_callback(step) and any(map(_reads_token, _mappings(step))):
                message = f"the step {shown(step.name)} reads `$context.task.token`, but has no task token"
                report.warning("no-task-token", name.span, message, Hint.CALLBACK_ONLY.of())


def _waits_for_callback(step: Step) -> bool:
    return isinstance(step, TaskStep) and step.pattern is Pattern.WAIT_FOR_CALLBACK


def _mappings(step: Step) -> tuple[Mapping, ...]:
    after_error = step.error_mappings if isinstance(step, TaskStep) else None
    return (*(step.input_mappings or ()), *(step.output_mappings or ()), *(after_error or ()))


def _reads_token(mapping: Mapping) -> bool:
    source = mapping.source
    return isinstance(source, Reference) and source.root is Root.CONTEXT and source.path.segments[:2] == _TOKEN
