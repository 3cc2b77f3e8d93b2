"""The table of target kinds: the patterns of each, and the parameters that `serviceParams` can hold for it.

Data and pure checks. `language` checks constants with them, `machine` checks the values of paths.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, get_args

from flowserver.base.json_values import InvalidJson, Json, load_json_object
from flowserver.base.names import NAME_RULE, is_name
from flowserver.language.graph import (
    ActionTarget,
    FlowTarget,
    FunctionTarget,
    Pattern,
    QueueTarget,
    Target,
    TopicTarget,
)
from flowserver.language.resources import START_EXECUTION

INVOCATION_TYPE: Final = "InvocationType"
INVOCATION_ID: Final = "StatefulAsyncInvocationID"
SYNC: Final = "Sync"
ASYNC: Final = "Async"

FLOW_NAME: Final = "FlowName"
EXECUTION_NAME: Final = "ExecutionName"
INPUT: Final = "Input"
QUALIFIER: Final = "Qualifier"

MESSAGE_BODY: Final = "MessageBody"
PRIORITY: Final = "Priority"
DELAY_SECONDS: Final = "DelaySeconds"
MESSAGE_TAG: Final = "MessageTag"
MESSAGE_ATTRIBUTES: Final = "MessageAttributes"

PRIORITY_MAX: Final = 16
DELAY_SECONDS_MAX: Final = 604_800
TAG_CHARACTERS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `rule` is what its value must be, for messages (`must be …`), and "" if anything will do.

    `words` are its allowed texts, if there is a closed list of them; `whole` are the bounds of a whole number.
    """

    name: str
    rule: str = ""
    accepts: Callable[[Json], bool] = lambda _: True
    is_required: bool = False
    words: tuple[str, ...] = ()
    whole: tuple[int, int] | None = None


Parameters = Mapping[str, Parameter]


def _one_of(name: str, *words: str) -> Parameter:
    return Parameter(name, f"must be {' or '.join(words)}", lambda value: value in words, words=words)


def _whole(name: str, minimum: int, maximum: int) -> Parameter:
    def accepts(value: Json) -> bool:
        return value is None or (value.__class__ is int and minimum <= value <= maximum)

    rule = f"must be a whole number from {minimum} to {maximum}"
    return Parameter(name, rule, accepts, whole=(minimum, maximum))


def _is_invocation_id(value: Json) -> bool:
    return value is None or (isinstance(value, str) and is_name(value))


def _is_qualifier(value: Json) -> bool:
    """Whether it may name a version, in YAML perhaps as a number, or an alias."""
    return value is None or (isinstance(value, str) and value != "") or (value.__class__ is int and value > 0)


def _is_tag(value: Json) -> bool:
    return value is None or (isinstance(value, str) and 1 <= len(value) <= TAG_CHARACTERS_MAX)


def _are_attributes(value: Json) -> bool:
    if not isinstance(value, str):
        return value is None or isinstance(value, dict)
    try:
        load_json_object(value)
    except InvalidJson:
        return False
    return True


def _of(*parameters: Parameter) -> Parameters:
    return MappingProxyType({parameter.name: parameter for parameter in parameters})


_BODY = Parameter(MESSAGE_BODY, "must not be an empty text", lambda value: value != "", is_required=True)
_INPUT, _EXECUTION_NAME = Parameter(INPUT), Parameter(EXECUTION_NAME)
_QUALIFIER = Parameter(QUALIFIER, "must be a version or the name of an alias", _is_qualifier)
_FUNCTION: Final = _of(
    _one_of(INVOCATION_TYPE, SYNC, ASYNC),
    Parameter(INVOCATION_ID, NAME_RULE, _is_invocation_id),
)
_FLOW: Final = _of(_INPUT, _EXECUTION_NAME, _QUALIFIER)
_START_EXECUTION: Final = _of(Parameter(FLOW_NAME, is_required=True), _INPUT, _EXECUTION_NAME, _QUALIFIER)
_QUEUE: Final = _of(_BODY, _whole(PRIORITY, 1, PRIORITY_MAX), _whole(DELAY_SECONDS, 0, DELAY_SECONDS_MAX))
_TOPIC: Final = _of(
    _BODY,
    Parameter(MESSAGE_TAG, f"must be a text of 1 to {TAG_CHARACTERS_MAX} characters", _is_tag),
    Parameter(MESSAGE_ATTRIBUTES, "must be an object, or its JSON text", _are_attributes),
)


@dataclass(frozen=True, slots=True)
class TargetKind:
    """What targets of one kind have in common; `title` is their name in messages."""

    title: str
    patterns: tuple[Pattern, ...]
    parameters: Parameters | None


_SENDING: Final = (Pattern.REQUEST_RESPONSE, Pattern.WAIT_FOR_CALLBACK)
_KINDS: Final[dict[type, TargetKind]] = {
    FunctionTarget: TargetKind("a function", tuple(Pattern), _FUNCTION),
    FlowTarget: TargetKind("a flow", tuple(Pattern), _FLOW),
    QueueTarget: TargetKind("a queue", _SENDING, _QUEUE),
    TopicTarget: TargetKind("a topic", _SENDING, _TOPIC),
    ActionTarget: TargetKind("an action", (Pattern.REQUEST_RESPONSE,), None),
}
assert set(_KINDS) == set(get_args(Target))
_START: Final = TargetKind(_KINDS[ActionTarget].title, _KINDS[ActionTarget].patterns, _START_EXECUTION)


@dataclass(frozen=True, slots=True)
class TargetForm:
    """How targets of one kind are written: what the attribute matches, as JSON Schema writes it."""

    name: str
    attribute: str
    pattern: str
    kind: TargetKind


TARGET_FORMS: Final = (
    TargetForm("function", "resourceArn", "^acs:fc:|^[^:]+$", _KINDS[FunctionTarget]),
    TargetForm("flow", "resourceArn", "^acs:fnf:", _KINDS[FlowTarget]),
    TargetForm("queue", "resourceArn", "^acs:mns:[^/]*/queues/", _KINDS[QueueTarget]),
    TargetForm("topic", "resourceArn", "^acs:mns:[^/]*/topics/", _KINDS[TopicTarget]),
    TargetForm("startExecution", "action", f"^{START_EXECUTION}$", _START),
    TargetForm("action", "action", f"^(?!{START_EXECUTION}$)", _KINDS[ActionTarget]),
)
"""Every form. Each target that is accepted has exactly one of them."""


def known_parameters(target: Target) -> Parameters | None:
    """The parameters of a target by name, or None if any can be: other products' actions have their own."""
    if isinstance(target, ActionTarget) and target.action == START_EXECUTION:
        return _START.parameters
    return _KINDS[type(target)].parameters


def offered_patterns(target: Target) -> tuple[Pattern, ...]:
    """The patterns that a target can run with."""
    return _KINDS[type(target)].patterns


def title_of(target: Target) -> str:
    """The name of a target in messages."""
    return _KINDS[type(target)].title
