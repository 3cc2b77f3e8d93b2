"""Text of a definition to its compiled graph: the package's entry point.

Puts the stages together and decides what a whole definition must have; the stages themselves are `source`
(YAML), `steps` (shape and expressions), `outline_checks`, `reachability` and `discarded_outputs` (rules over lists).
"""

import sys
from dataclasses import dataclass, replace
from typing import Final

from flowserver.base.limits import Limits
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import CheckingStopped, DefinitionRejected, Diagnostic, Report, shown
from flowserver.language.discarded_outputs import check_discarded_outputs
from flowserver.language.fields import FLOW, VERSIONS
from flowserver.language.graph import Flow, Span
from flowserver.language.hints import Hint
from flowserver.language.mappings import read_mappings
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode
from flowserver.language.outline_checks import check_gotos, check_names
from flowserver.language.reachability import check_reachability
from flowserver.language.source import read_source
from flowserver.language.steps import StepsReader
from flowserver.language.task_token_warnings import check_task_tokens

STORED_LIMITS: Final = replace(Limits(), definition_characters_max=sys.maxsize)
"""Limits for definitions that were accepted before; a bound that came later does not stop them."""

REF_KEYS: Final = frozenset({"resourceArn"})
"""The keys whose values may have the tag `!Ref`."""


@dataclass(frozen=True, slots=True)
class ParsedDefinition:
    """A valid definition and its warnings."""

    flow: Flow
    warnings: tuple[Diagnostic, ...]


def parse(
    text: str, limits: Limits, *, allow_ref_tags: bool = False, lenient: bool = False, work: Work | None = None
) -> ParsedDefinition:
    """Parse and check a definition in YAML or JSON.

    Raises nothing but DefinitionRejected, for any text; it carries at most DIAGNOSTICS_MAX + 1 diagnostics.
    With `allow_ref_tags`, `resourceArn: !Ref service/function` is read as a deployment tool would expand it.
    With `lenient`, unknown attributes and empty ones are left out with a warning instead of an error.
    `work` counts the cost of the check and pauses it.
    """
    report, work = Report(lenient=lenient), work or Work()
    flow = None
    try:
        root = read_source(text, limits, report, work, REF_KEYS if allow_ref_tags else frozenset())
        flow = _flow(root, AttributeReader(report, limits, work))
    except CheckingStopped:
        pass
    if flow is None or report.has_errors:
        raise DefinitionRejected(report.diagnostics())
    return ParsedDefinition(flow, report.diagnostics())


def parse_stored(text: str) -> Flow:
    """The graph of a definition that was accepted before. The present limits and strictness do not apply.

    Raises DefinitionRejected for a text that no version accepted.
    """
    return parse(text, STORED_LIMITS, lenient=True).flow


def _flow(root: Node, reader: AttributeReader) -> Flow | None:
    if span := _newer_dialect(root):
        message = "this is the newer language (Type: StateMachine), which is not supported"
        reader.report.error("newer-dialect", span, message, Hint.OLDER_DIALECT.of())
        return None
    attributes = reader.read(root, FLOW)
    if attributes is None:
        return None
    _check_header(attributes, reader)
    name = attributes.get("name", ScalarNode)
    steps = StepsReader(reader)
    node = attributes.get("steps", ListNode)
    if node:
        if not node.items:
            reader.report.error("empty-list", node.span, "`steps` needs at least one step")
        steps.read_list(node)
    flow = Flow(
        version=reader.text(attributes, "version") or "",
        lists=steps.lists,
        input_mappings=read_mappings(reader, attributes, "inputMappings"),
        output_mappings=read_mappings(reader, attributes, "outputMappings"),
        timeout_seconds=reader.whole(attributes, "timeoutSeconds"),
        name=name.text if name else None,
    )
    check_names(steps.outlines, reader.report)
    check_gotos(steps.outlines, reader.report, reader.work)
    if not reader.report.has_errors:  # a missing step would look like a missing edge
        check_reachability(flow, steps.outlines, reader.report)
        check_discarded_outputs(flow, steps.outlines, reader.report)
        check_task_tokens(flow, steps.outlines, reader.report)
    return flow


def _newer_dialect(root: Node) -> Span | None:
    """The place that marks the text as a state machine of the newer language, or None."""
    for entry in root.entries if isinstance(root, MapNode) else ():
        states = isinstance(entry.value, ScalarNode) and entry.value.text == "StateMachine"
        if entry.name in ("SpecVersion", "States") or (entry.name == "Type" and states):
            return entry.key_span
    return None


def _check_header(attributes: Attributes, reader: AttributeReader) -> None:
    version = attributes.get("version", ScalarNode)
    if version and version.text not in VERSIONS:
        message = f"the version {shown(version.text)} is not supported"
        reader.report.error("bad-version", version.span, message, Hint.VERSION.of(version=VERSIONS[0]))
    kind = attributes.get("type", ScalarNode)
    if kind and kind.text != "flow":
        reader.report.error("bad-value", kind.span, "`type` must be `flow`")
