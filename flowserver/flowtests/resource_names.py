"""Which resources a test's key means: the key is the end of one of the resource's names, from a `/` or `:` on.

A function has two names: `services/pay/functions/charge` in its ARN, and `pay/charge`, as it is registered.
"""

from collections.abc import Iterator

from flowserver.language.graph import ActionTarget, FlowTarget, FunctionTarget, QueueTarget, Target, TopicTarget


def names_of(target: Target) -> Iterator[str]:
    """The names of a resource that a key may be the end of; the first is how messages name it."""
    match target:
        case FunctionTarget(arn, service, qualifier, function):
            yield f"services/{service}/functions/{function}" if service else f"functions/{function}"
            yield f"{service or '-'}/{function}"
            if qualifier:
                yield arn
                yield f"{service}.{qualifier}/{function}"
        case FlowTarget(arn, flow_name):
            yield f"flow/{flow_name}"
        case QueueTarget(arn, queue):
            yield f"/queues/{queue}"
        case TopicTarget(arn, topic):
            yield f"/topics/{topic}"
        case ActionTarget(action):
            yield action


def title_of(target: Target) -> str:
    """How messages name the resource."""
    return next(names_of(target))


def meant_by_key(key: str, target: Target) -> bool:
    """Whether the key means the resource: `charge`, `functions/charge` or the whole name."""
    if not isinstance(target, ActionTarget) and key == target.arn:
        return True
    return any(_is_end(key, name) for name in names_of(target))


def keys_of(target: Target) -> Iterator[str]:
    """Every key that means the resource."""
    if not isinstance(target, ActionTarget):
        yield target.arn
    for name in names_of(target):
        yield name
        for at, character in enumerate(name):
            if character in "/:":
                yield from (name[at:], name[at + 1 :])


def _is_end(key: str, name: str) -> bool:
    if not key or not name.endswith(key):
        return False
    return len(key) == len(name) or key[0] in "/:" or name[-len(key) - 1] in "/:"
