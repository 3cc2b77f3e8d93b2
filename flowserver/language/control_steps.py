"""Reads `choice`, `parallel` and `foreach`: the steps that hold lists of steps."""

from flowserver.expressions.conditions import compile_condition
from flowserver.expressions.paths import compile_path
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.fields import BRANCH, DEFAULT, ITERATION, OPTION
from flowserver.language.graph import ChoiceStep, ForeachStep, Option, ParallelStep
from flowserver.language.hints import Hint
from flowserver.language.mappings import warn_if_like_a_path
from flowserver.language.nodes import ListNode, MapNode, ScalarNode
from flowserver.language.step_context import StepBasics, StepContext


def read_choice(context: StepContext, attributes: Attributes, basics: StepBasics) -> ChoiceStep:
    """A choice step: options in order, then the default."""
    report = context.reader.report
    options = [_option(context, entry) for entry in context.reader.entries(attributes, "choices", OPTION)]
    if attributes.written & {"choices", "default"} == {"choices"} and not any(
        option.is_always_taken for option in options
    ):
        message = "when no condition is true, this choice does nothing and the next step runs"
        report.warning("choice-without-default", attributes.head, message, Hint.ADD_DEFAULT.of())
    node = attributes.get("default", MapNode)
    otherwise = context.reader.read(node, DEFAULT) if node else None
    return ChoiceStep(**basics, options=tuple(options), default=_option(context, otherwise) if otherwise else None)


def _option(context: StepContext, attributes: Attributes) -> Option:
    node = attributes.get("condition", ScalarNode)
    condition = context.reader.compiled(node, compile_condition, "bad-condition") if node else None
    inner = attributes.get("steps", ListNode)
    steps = context.steps(attributes) if inner and inner.items else None  # an option may do nothing
    return Option(condition, steps, context.goto(attributes))


def read_parallel(context: StepContext, attributes: Attributes, basics: StepBasics) -> ParallelStep:
    """A parallel step: at least one branch, at most as many as the limits say."""
    reader = context.reader
    node = attributes.get("branches", ListNode)
    if node and not node.items:
        reader.report.error("empty-list", node.span, "`branches` needs at least one branch")
    if node and len(node.items) > reader.limits.branches_max:
        message = f"a parallel step has at most {reader.limits.branches_max} branches, not {len(node.items)}"
        reader.report.error("too-many-branches", attributes.key_span("branches"), message)
    lists = [context.steps(branch) for branch in reader.entries(attributes, "branches", BRANCH)]
    return ParallelStep(**basics, branches=tuple(steps for steps in lists if steps))


def read_foreach(context: StepContext, attributes: Attributes, basics: StepBasics) -> ForeachStep | None:
    """A foreach step, or None if its collection, its item or its steps are not usable."""
    steps = context.steps(attributes)
    node = attributes.get("iterationMapping", MapNode)
    iteration = context.reader.read(node, ITERATION) if node else None
    if iteration is None:
        return None
    collection = iteration.get("collection", ScalarNode)
    path = context.reader.compiled(collection, compile_path, "bad-path") if collection else None
    item, index = _keys(context.reader, iteration)
    if path is None or item is None or steps is None:
        return None
    return ForeachStep(**basics, collection=path, item=item, index=index, steps=steps)


def _keys(reader: AttributeReader, iteration: Attributes) -> tuple[str | None, str | None]:
    for name in ("item", "index"):
        if node := iteration.get(name, ScalarNode):
            warn_if_like_a_path(reader, node, Hint.PLAIN_KEY.of(name=name))
    item, index = reader.text(iteration, "item"), reader.text(iteration, "index")
    if item is not None and item == index:
        reader.report.error("bad-value", iteration.key_span("index"), "`item` and `index` must be different keys")
    return item, index
