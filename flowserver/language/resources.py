"""Resource names and actions to task targets. Knows their written form, not whether they exist.

The forms are those of the service-integration pages and, for functions without a service, of Function Compute 3.
Region and account may be empty and are not used: everything runs here.
"""

import re
from collections.abc import Callable
from typing import Final

from flowserver.language.diagnostics import shown
from flowserver.language.graph import ActionTarget, FlowTarget, FunctionTarget, QueueTarget, Target, TopicTarget
from flowserver.language.hints import Hint

_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,127}"
_QUALIFIER = r"[A-Za-z0-9_-]{1,128}"
_FUNCTION = re.compile(rf"services/({_NAME})(?:\.({_QUALIFIER}))?/functions/({_NAME})")
_FUNCTION_ALONE = re.compile(rf"functions/({_NAME})(?:/({_QUALIFIER}))?")
_FLOW = re.compile(rf"flow/({_NAME})")
_MESSAGES = re.compile(r"/(queues|topics)/([A-Za-z0-9][A-Za-z0-9-]{0,119})/messages")
_ANY_MESSAGES = re.compile(r"/(?:queues|topics)/([^/]+)/messages")
_OWNER = re.compile(r"[A-Za-z0-9_-]*")
_ACTION = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):([A-Za-z][A-Za-z0-9_]*)")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_REF = re.compile(rf"({_NAME})/({_NAME})")

ACTION_PATTERN: Final = f"^{_ACTION.pattern}$"
"""What every action matches, as JSON Schema writes it."""

RESOURCE_PATTERN: Final = (
    rf"^acs:fc:{_OWNER.pattern}:{_OWNER.pattern}:({_FUNCTION.pattern}|{_FUNCTION_ALONE.pattern})$"
    rf"|^acs:fnf:{_OWNER.pattern}:{_OWNER.pattern}:{_FLOW.pattern}$"
    rf"|^acs:mns:{_OWNER.pattern}:{_OWNER.pattern}:{_MESSAGES.pattern}$"
    rf"|^{_REF.pattern}$"
)
"""What every resourceArn matches, as JSON Schema writes it. It sees no tags, so the last form is that of `!Ref`."""

START_EXECUTION: Final = "fnf:StartExecution"

FUNCTION_FORM: Final = "acs:fc:::services/{service}/functions/{function}"
FLOW_FORM: Final = "acs:fnf:::flow/{flowName}"
QUEUE_FORM: Final = "acs:mns:::/queues/{queueName}/messages"
TOPIC_FORM: Final = "acs:mns:::/topics/{topicName}/messages"
FORMS: Final = f"{FUNCTION_FORM}, {FLOW_FORM}, {QUEUE_FORM} or {TOPIC_FORM}"


class ResourceError(ValueError):
    """The text names no target that a task can run; carries the diagnostic's id, sentence and hint."""

    def __init__(self, id: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.id = id
        self.message = message
        self.hint = hint


def parse_resource(arn: str) -> Target:
    """The target of a resourceArn; raises ResourceError."""
    parts = arn.split(":", 4)
    if len(parts) != 5 or parts[0] != "acs":
        raise ResourceError("bad-resource", "this does not name a resource", Hint.FORMS.of(forms=FORMS))
    _, service, region, account, name = parts
    if _PLACEHOLDER.search(arn):
        plain = _PLACEHOLDER.sub(r"\1", name)
        hint = Hint.NO_BRACES.of(example=shown(f"acs:{service}:::{plain}"))
        raise ResourceError("bad-resource", "this still holds a placeholder in braces", hint)
    if service not in _PARSERS:
        raise ResourceError(
            "bad-resource", "a task runs a function or a flow, or sends to a queue or topic", Hint.FORMS.of(forms=FORMS)
        )
    target = _PARSERS[service](arn, name)
    if not _OWNER.fullmatch(region) or not _OWNER.fullmatch(account):
        hint = Hint.NO_OWNER.of(resource=shown(f"acs:{service}:::{name}"))
        raise ResourceError("bad-resource", "the region or the account is not valid", hint)
    return target


def _function(arn: str, name: str) -> FunctionTarget:
    if found := _FUNCTION.fullmatch(name):
        return FunctionTarget(arn, found[1], found[2] or "", found[3])
    if found := _FUNCTION_ALONE.fullmatch(name):
        return FunctionTarget(arn, "", found[2] or "", found[1])
    hint = Hint.FORMS.of(forms=f"{FUNCTION_FORM} or acs:fc:::functions/{{function}}")
    raise ResourceError("bad-resource", "this does not name a function", hint)


def _flow(arn: str, name: str) -> FlowTarget:
    if found := _FLOW.fullmatch(name):
        return FlowTarget(arn, found[1])
    raise ResourceError("bad-resource", "this does not name a flow", Hint.FORMS.of(forms=FLOW_FORM))


def _messages(arn: str, name: str) -> QueueTarget | TopicTarget:
    if found := _MESSAGES.fullmatch(name):
        return QueueTarget(arn, found[2]) if found[1] == "queues" else TopicTarget(arn, found[2])
    if found := _ANY_MESSAGES.fullmatch(name):
        message = f"{found[1]!r} is no name of a queue or topic"
        raise ResourceError("bad-resource", message, Hint.QUEUE_OR_TOPIC_NAME.of())
    message = "this does not name the messages of a queue or topic"
    raise ResourceError("bad-resource", message, Hint.FORMS.of(forms=f"{QUEUE_FORM} or {TOPIC_FORM}"))


_PARSERS: Final[dict[str, Callable[[str, str], Target]]] = {"fc": _function, "fnf": _flow, "mns": _messages}


def expand_ref(text: str) -> str:
    """The resourceArn that `!Ref service/function` expands to; raises ResourceError."""
    found = _REF.fullmatch(text)
    if found is None:
        raise ResourceError("bad-resource", "this does not name a function", Hint.REF.of())
    return f"acs:fc:::services/{found[1]}/functions/{found[2]}"


def parse_action(action: str) -> ActionTarget:
    """The target of an action; raises ResourceError. Of the service's own actions only StartExecution is known."""
    found = _ACTION.fullmatch(action)
    if found is None:
        raise ResourceError("bad-action", "an action is written `{service}:{Api}`")
    if found[1].lower() == "fnf" and action != START_EXECUTION:
        raise ResourceError("unsupported-action", f"the only fnf action supported is `{START_EXECUTION}`")
    return ActionTarget(action, found[1], found[2])
