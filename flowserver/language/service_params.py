"""Reads a task's `serviceParams`: which parameters its target takes, and what each of them is."""

from typing import Final, get_args

from flowserver.expressions.paths import compile_path
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    ParamPath,
    ParamValue,
    QueueTarget,
    Target,
    TopicTarget,
)
from flowserver.language.hints import Hint
from flowserver.language.mappings import warn_if_like_a_path
from flowserver.language.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from flowserver.language.targets import Parameter, known_parameters, title_of

_FOR_DATA: Final[dict[type, Hint]] = {
    FunctionTarget: Hint.FUNCTION_INPUT,
    FlowTarget: Hint.FLOW_INPUT,
    ActionTarget: Hint.FLOW_INPUT,
    QueueTarget: Hint.SENT_BODY,
    TopicTarget: Hint.PUBLISHED_BODY,
}
"""What to use instead of a parameter that does not exist."""
assert set(_FOR_DATA) == set(get_args(Target))


def read_parameters(
    reader: AttributeReader, attributes: Attributes, target: Target | None
) -> dict[str, ParamValue] | None:
    """The parameters, or None if there are none; a target that was refused takes any."""
    node = attributes.get("serviceParams", MapNode)
    entries = node.entries if node else ()
    params = {entry.name: _param(reader, entry.value) for entry in entries}
    known = None if target is None else known_parameters(target)
    if target is not None and known is not None:
        for parameter in known.values():
            if parameter.is_required and parameter.name not in params:
                message = f"`serviceParams` needs `{parameter.name}` for {title_of(target)}"
                reader.report.error("missing-parameter", attributes.key_span("serviceParams"), message)
        for entry in entries:
            if entry.name in known:
                _check_value(reader, known[entry.name], entry.value, params[entry.name])
            else:
                _report_unknown(reader, target, list(known), entry)
    return params if node else None


def _report_unknown(reader: AttributeReader, target: Target, known: list[str], entry: Entry) -> None:
    message = f"{shown(entry.name)} is not a parameter of {title_of(target)}; there are {', '.join(known)}"
    hint = reader.work.similar(entry.name, known) or _FOR_DATA[type(target)].of()
    reader.report.error("unknown-parameter", entry.key_span, message, hint)


def _check_value(reader: AttributeReader, parameter: Parameter, node: Node, value: ParamValue) -> None:
    if isinstance(value, ParamPath) or parameter.accepts(value):
        return
    hint = reader.work.similar(node.text, parameter.words) if isinstance(node, ScalarNode) else None
    reader.report.error("bad-value", node.span, f"`{parameter.name}` {parameter.rule}, or a path", hint)


def _param(reader: AttributeReader, node: Node) -> ParamValue:
    if isinstance(node, ListNode):
        return [_param(reader, item) for item in node.items]
    if isinstance(node, MapNode):
        return {entry.name: _param(reader, entry.value) for entry in node.entries}
    if isinstance(node.value, str) and (node.text == "$" or node.text.startswith(("$.", "$["))):
        path = reader.compiled(node, compile_path, "bad-path")
        return ParamPath(path) if path else None
    warn_if_like_a_path(reader, node, Hint.SELECT_FROM_INPUT.of())
    return node.value
