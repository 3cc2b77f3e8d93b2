"""Reads `pass`, `succeed`, `fail` and `wait`."""

from dataclasses import replace

from flowserver.base.clock import INSTANT_MS_MAX, parse_instant
from flowserver.expressions.paths import Path, compile_path
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.graph import FailStep, PassStep, SucceedStep, WaitStep
from flowserver.language.hints import Hint
from flowserver.language.mappings import warn_if_like_a_path
from flowserver.language.nodes import ScalarNode
from flowserver.language.step_context import StepBasics, StepContext


def read_pass(_: StepContext, __: Attributes, basics: StepBasics) -> PassStep:
    """A pass step."""
    return PassStep(**basics)


def read_succeed(_: StepContext, __: Attributes, basics: StepBasics) -> SucceedStep:
    """A succeed step."""
    return SucceedStep(**basics)


def read_fail(context: StepContext, attributes: Attributes, basics: StepBasics) -> FailStep:
    """A fail step with its defaults filled in."""
    reader = context.reader
    error = reader.text(attributes, "error")
    cause = reader.text(attributes, "cause")
    for name in ("error", "cause"):
        node = attributes.get(name, ScalarNode)
        if node is not None:
            warn_if_like_a_path(reader, node, Hint.CONSTANT.of(name=name))
    step = FailStep(**basics, cause=cause or "")
    return replace(step, error=error) if error else step


def read_wait(context: StepContext, attributes: Attributes, basics: StepBasics) -> WaitStep:
    """A wait step."""
    reader = context.reader
    return WaitStep(**basics, duration=_duration(reader, attributes), timestamp=_timestamp(reader, attributes))


def _duration(reader: AttributeReader, attributes: Attributes) -> int | Path | None:
    node = attributes.get("duration", ScalarNode)
    if node is None or not isinstance(node.value, str):
        return reader.whole(attributes, "duration")
    if node.text.startswith("$"):
        return reader.compiled(node, compile_path, "bad-path")
    hint = reader.text_hint(node.text, attributes.kind.fields["duration"])
    reader.report.error("bad-value", node.span, "`duration` is a whole number of seconds, or a path", hint)
    return None


def _timestamp(reader: AttributeReader, attributes: Attributes) -> int | Path | None:
    node = attributes.get("timestamp", ScalarNode)
    if node is None:
        return None
    if node.text.startswith("$"):
        return reader.compiled(node, compile_path, "bad-path")
    try:
        instant = parse_instant(node.text)
    except ValueError:
        instant = INSTANT_MS_MAX + 1
    if instant <= INSTANT_MS_MAX:
        return instant
    message = "`timestamp` is an RFC 3339 instant, or a path"
    reader.report.error("bad-value", node.span, message, Hint.INSTANT.of())
    return None
