"""Reads `task`: its target, its parameters, and its handling of errors."""

from collections.abc import Callable
from typing import Any, Final, get_args

from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.diagnostics import shown
from flowserver.language.fields import CATCH, RETRY
from flowserver.language.graph import (
    CatchRule,
    ChildLifecycle,
    FlowTarget,
    Pattern,
    RetryPolicy,
    Target,
    TaskStep,
)
from flowserver.language.hints import Hint
from flowserver.language.mappings import read_mappings
from flowserver.language.nodes import ListNode, ScalarNode
from flowserver.language.resources import ResourceError, expand_ref, parse_action, parse_resource
from flowserver.language.service_params import read_parameters
from flowserver.language.step_context import StepBasics, StepContext
from flowserver.language.targets import offered_patterns, title_of

LIFECYCLES: Final = get_args(ChildLifecycle)


def read_task(context: StepContext, attributes: Attributes, basics: StepBasics) -> TaskStep | None:
    """A task step, or None if it has no usable target."""
    reader = context.reader
    resource = _target(reader, attributes, "resourceArn", parse_resource)
    target = resource or _target(reader, attributes, "action", parse_action)
    pattern = _pattern(reader, attributes, target)
    params = read_parameters(reader, attributes, target)
    timeout = reader.whole(attributes, "timeoutSeconds")
    policies = attributes.get("retry", ListNode)
    if policies and not policies.items:
        reader.report.error(
            "empty-attribute", attributes.key_span("retry"), "`retry` has no policy", Hint.LEAVE_OUT.of()
        )
    retry = [_retry_policy(reader, entry) for entry in reader.entries(attributes, "retry", RETRY)]
    catch = [_catch_rule(context, entry) for entry in reader.entries(attributes, "catch", CATCH)]
    error_mappings = read_mappings(reader, attributes, "errorMappings")
    if error_mappings and not catch:
        span = attributes.key_span("errorMappings")
        reader.report.warning("unused-error-mappings", span, "errorMappings have no effect without a catch")
    if target is None:
        return None
    return TaskStep(
        **basics,
        target=target,
        pattern=pattern,
        service_params=params,
        timeout_seconds=timeout,
        retry=tuple(retry),
        catch=tuple(catch),
        error_mappings=error_mappings,
        child_lifecycle=_child_lifecycle(reader, attributes, target, pattern),
    )


def _target(
    reader: AttributeReader, attributes: Attributes, name: str, parse: Callable[[str], Target]
) -> Target | None:
    node = attributes.get(name, ScalarNode)
    if node is None:
        return None
    try:
        return parse(expand_ref(node.text) if node.is_ref else node.text)
    except ResourceError as error:
        reader.report.error(error.id, node.span, error.message, error.hint)
        return None


def _pattern(reader: AttributeReader, attributes: Attributes, target: Target | None) -> Pattern:
    node = attributes.get("pattern", ScalarNode)
    if node is None:
        return Pattern.REQUEST_RESPONSE
    known = [pattern.value for pattern in Pattern]
    if node.text not in known:
        hint = reader.work.similar(node.text, known) or Hint.PATTERNS.of(patterns=", ".join(known))
        reader.report.error("bad-value", node.span, f"{shown(node.text)} is not a pattern", hint)
        return Pattern.REQUEST_RESPONSE
    pattern = Pattern(node.text)
    if target and pattern not in offered_patterns(target):
        message = f"{title_of(target)} does not offer the pattern `{pattern}`"
        hint = Hint.OFFERED_PATTERNS.of(patterns=" or ".join(f"`{offered}`" for offered in offered_patterns(target)))
        reader.report.error("pattern-not-offered", node.span, message, hint)
    return pattern


def _child_lifecycle(
    reader: AttributeReader, attributes: Attributes, target: Target, pattern: Pattern
) -> ChildLifecycle | None:
    node = attributes.get("childLifecycle", ScalarNode)
    if node is None:
        return None
    if node.text not in LIFECYCLES:
        message = f"{shown(node.text)} is neither `owned` nor `independent`"
        reader.report.error("bad-value", node.span, message, reader.work.similar(node.text, LIFECYCLES))
        return None
    if not isinstance(target, FlowTarget) or pattern is not Pattern.SYNC:
        message = "`childLifecycle` is for a `resourceArn` of a flow with `pattern: sync`"
        reader.report.error("bad-value", attributes.key_span("childLifecycle"), message)
    return "owned" if node.text == "owned" else "independent"


def _retry_policy(reader: AttributeReader, attributes: Attributes) -> RetryPolicy:
    numbers: dict[str, Any] = {
        "interval_seconds": reader.whole(attributes, "intervalSeconds"),
        "max_interval_seconds": reader.whole(attributes, "maxIntervalSeconds"),
        "max_attempts": reader.whole(attributes, "maxAttempts"),
        "multiplier": reader.number(attributes, "multiplier"),
    }
    given = {name: value for name, value in numbers.items() if value is not None}
    return RetryPolicy(errors=_errors(reader, attributes), **given)


def _catch_rule(context: StepContext, attributes: Attributes) -> CatchRule:
    return CatchRule(_errors(context.reader, attributes), context.goto(attributes) or "")


def _errors(reader: AttributeReader, attributes: Attributes) -> frozenset[str]:
    node = attributes.get("errors", ListNode)
    if node is None:
        return frozenset()
    if not node.items:
        reader.report.error("empty-list", node.span, "`errors` needs at least one error name")
    names = [item.value if isinstance(item, ScalarNode) else None for item in node.items]
    for item, name in zip(node.items, names, strict=True):
        if not isinstance(name, str):
            reader.report.error("wrong-type", item.span, "an error name must be a text")
    return frozenset(name for name in names if isinstance(name, str))
