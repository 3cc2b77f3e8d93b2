"""What a reference that finds nothing was probably meant to be."""

from difflib import get_close_matches
from typing import Final

from flowserver.analysis.shapes import Array, Document, Presence, Shape, look_up
from flowserver.expressions.references import Reference, Root
from flowserver.language.diagnostics import shown
from flowserver.language.graph import (
    ChoiceStep,
    FlowTarget,
    ForeachStep,
    Mapping,
    ParallelStep,
    Pattern,
    QueueTarget,
    Step,
    TaskStep,
    TopicTarget,
)

KEYS_SHOWN_MAX: Final = 5
"""Keys of a branch's output that a hint names."""

NEARLY: Final = 0.8
"""How alike, from 0 to 1, a key must be to the misspelt key."""


def hint_of(mapping: Mapping, input: Shape, local: Shape, of_root: str | None = None) -> str | None:
    """The best hint for a source that finds nothing; `of_root` is what is known of its root in this place."""
    source = mapping.source
    if not isinstance(source, Reference) or source.root is Root.CONTEXT or source.path.is_root:
        return of_root
    own, other, name = (local, input, Root.INPUT) if source.root is Root.LOCAL else (input, local, Root.LOCAL)
    presence, _ = look_up(other, source.path.segments)
    text = f"`${name}{source.path.text[1:]}`"
    if presence in (Presence.ALWAYS, Presence.SOMETIMES):
        return f"{text} is there"
    certain = _near_key(source, own) or _hint_for_element(source, own)
    perhaps = f"{text} may be meant" if presence is Presence.UNKNOWN else None
    return certain or (perhaps or of_root if source.root is Root.INPUT else of_root or perhaps)


def _near_key(source: Reference, shape: Shape) -> str | None:
    """A key that differs little from the first one of the path that is not there."""
    for position, segment in enumerate(source.path.segments):
        before = source.path.segments[:position]
        _, holder = look_up(shape, before)
        if not isinstance(holder, Document) or not isinstance(segment, str) or "[" in source.path.text:
            return None
        if segment not in holder.parts:
            by_case = {key.lower(): key for key in holder.parts}
            near = get_close_matches(segment.lower(), by_case, n=1, cutoff=NEARLY)
            keys = ".".join((*map(str, before), by_case[near[0]])) if near else ""
            return f"did you mean `${source.root}.{keys}`?" if near else None
    return None


def _hint_for_element(source: Reference, local: Shape) -> str | None:
    """What an element of a result has, if a mapping reads it by its position."""
    if source.root is not Root.LOCAL or not isinstance(local, Array):
        return None
    segments = source.path.segments
    if not segments or not isinstance(segments[0], int) or local.elements is None:
        return None
    if segments[0] >= len(local.elements):
        return f"there are {len(local.elements)} branches, counted from 0"
    element = local.elements[segments[0]]
    keys = list(element.parts)[:KEYS_SHOWN_MAX] if isinstance(element, Document) else []
    return f"`$local[{segments[0]}]` has {', '.join(map(shown, keys)) or 'no keys'}"


def hint_for_result(step: Step) -> str | None:
    """What `$local` is in the step's outputMappings, if it has a surprise."""
    match step:
        case TaskStep(target=FlowTarget(), pattern=Pattern.REQUEST_RESPONSE):
            return "this step ends when the flow has started; `pattern: sync` waits for its output"
        case TaskStep(target=QueueTarget() | TopicTarget()):
            return "this step ends when the message is stored; `pattern: waitForCallback` waits for a result"
        case TaskStep():
            return "this step ends when the invocation is submitted; `pattern: sync` waits for its result"
        case ParallelStep() | ForeachStep():
            return "`$local` is a list here, one item per run: `$local[*].key`"
        case ChoiceStep():
            return "`$local` is that of the option that was taken"
    return "`$local` is empty in this step's outputMappings"
