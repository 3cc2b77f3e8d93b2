"""Reads a task's `serviceParams`: which parameters its target takes, and what each of them is."""

from flowserver.expressions.paths import compile_path
from flowserver.language.attributes import AttributeReader, Attributes, similar
from flowserver.language.diagnostics import shown
from flowserver.language.graph import ActionTarget, FunctionTarget, ParamPath, ParamValue, Target
from flowserver.language.mappings import warn_if_like_a_path
from flowserver.language.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from flowserver.language.resources import INVOCATION_TYPE, INVOCATION_TYPES, REQUIRED_PARAMETERS, known_parameters


def read_parameters(
    reader: AttributeReader, attributes: Attributes, target: Target | None
) -> dict[str, ParamValue] | None:
    """The parameters, or None if there are none; a target that was refused takes any."""
    node = attributes.get("serviceParams", MapNode)
    entries = node.entries if node else ()
    _check_required(reader, attributes, target, {entry.name for entry in entries})
    params: dict[str, ParamValue] = {}
    for entry in entries:
        params[entry.name] = _param(reader, entry.value)
        if target is not None:
            _check_known(reader, target, entry)
        if isinstance(target, FunctionTarget) and entry.name == INVOCATION_TYPE:
            _check_invocation_type(reader, entry.value, params[entry.name])
    return params if node else None


def _check_required(reader: AttributeReader, attributes: Attributes, target: Target | None, names: set[str]) -> None:
    required = REQUIRED_PARAMETERS.get(target.action, ()) if isinstance(target, ActionTarget) else ()
    for name in required:
        if name not in names:
            span = attributes.key_span("serviceParams")
            reader.report.error("missing-parameter", span, f"`serviceParams` needs `{name}` for this action")


def _check_known(reader: AttributeReader, target: Target, entry: Entry) -> None:
    known = known_parameters(target)
    if known is None or entry.name in known:
        return
    function = isinstance(target, FunctionTarget)
    otherwise = "a function gets the step's input: use `inputMappings`" if function else "a flow gets its `Input`"
    message = f"{shown(entry.name)} is not a parameter of this target; there are {', '.join(known)}"
    reader.report.error("unknown-parameter", entry.key_span, message, similar(entry.name, list(known)) or otherwise)


def _check_invocation_type(reader: AttributeReader, node: Node, value: ParamValue) -> None:
    if isinstance(value, ParamPath) or value in INVOCATION_TYPES:
        return
    hint = similar(node.text, list(INVOCATION_TYPES)) if isinstance(node, ScalarNode) else None
    message = f"`{INVOCATION_TYPE}` is {' or '.join(INVOCATION_TYPES)}, or a path"
    reader.report.error("bad-value", node.span, message, hint)


def _param(reader: AttributeReader, node: Node) -> ParamValue:
    if isinstance(node, ListNode):
        return [_param(reader, item) for item in node.items]
    if isinstance(node, MapNode):
        return {entry.name: _param(reader, entry.value) for entry in node.entries}
    if isinstance(node.value, str) and (node.text == "$" or node.text.startswith(("$.", "$["))):
        path = reader.compiled(node, compile_path, "bad-path")
        return ParamPath(path) if path else None
    warn_if_like_a_path(reader, node, "parameters select from the step's input with `$` or `$.key`")
    return node.value
