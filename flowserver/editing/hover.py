"""What an editor shows of the place under the pointer: attributes, steps, references, parameters."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flowserver.base.limits import Limits
from flowserver.editing.call_targets import parameters_of
from flowserver.editing.completion import NO_MEANINGS, Meanings
from flowserver.editing.facts import KnownStep, keys_in_words, outputs_of
from flowserver.editing.files import Definition, EditedFile, FlowTest, Surroundings
from flowserver.editing.grammar import Keys, attribute_of, field_of, is_step, text_of
from flowserver.editing.outline import StepEntry
from flowserver.editing.references import is_by_path, list_around, path_in_words, source_in_words, step_around
from flowserver.editing.step_names import mention_at, step_at, step_of_mention
from flowserver.editing.texts import Extent
from flowserver.editing.tree import Found, Spot
from flowserver.language.fields import STEPS, Field, Shape
from flowserver.language.nodes import Entry, MapNode, ScalarNode

_ERRORS = ("errors", "error", "fail")


@dataclass(frozen=True, slots=True)
class Hover:
    """A text in Markdown about a part of a file."""

    extent: Extent
    markdown: str


def hover_at(
    file: EditedFile, offset: int, path: Path | None, others: Surroundings, errors: Meanings = NO_MEANINGS
) -> Hover | None:
    """What there is to say of a place; None if nothing. `errors` says when errors come up, by their names."""
    found = _hover_at(file, offset, path, others, errors)
    is_here = found is not None and found.extent.start < found.extent.end and found.extent.holds(offset)
    return found if is_here else None  # what an earlier text had here may be gone


def _hover_at(file: EditedFile, offset: int, path: Path | None, others: Surroundings, errors: Meanings) -> Hover | None:
    if isinstance(file, FlowTest) and path is not None and (mention := mention_at(file, offset)):
        meant = step_of_mention(mention, file, path, others)
        return None if meant is None else Hover(mention.extent, _step(meant[1], meant[2]))
    found = file.at(offset)
    if found is None:
        return None
    if found.key is not None:
        text = _key(found.spot, found.key, file.limits)
        return None if text is None else Hover(file.moved(found.key.key_span), text)
    node = found.spot.node
    if isinstance(node, ScalarNode) and found.spot.attribute in _ERRORS and node.text in errors:
        return Hover(file.extent(node), errors[node.text])
    return _value(file, found, offset) if isinstance(file, Definition) else None


def _key(spot: Spot, key: Entry, limits: Limits) -> str | None:
    if isinstance(spot.kind, Keys) and spot.kind.attribute == "serviceParams" and spot.around is not None:
        task = spot.around.node
        parameter = parameters_of(task).get(key.name) if isinstance(task, MapNode) else None
        if parameter is None:
            return None
        needed = " It is required." if parameter.is_required else ""
        return f"`{key.name}` {parameter.rule or 'can have any value'}, or a path into the step's input.{needed}"
    field = field_of(spot.kind, key.name)
    return None if field is None else "\n\n".join(field_in_words(field, limits))


def field_in_words(field: Field, limits: Limits) -> Iterator[str]:
    """An attribute as paragraphs."""
    values = " or ".join(shape.value for shape in field.shapes)
    yield f"**{field.name}**: {values}"
    yield field.doc
    if field.words:
        yield f"One of {', '.join(f'`{word}`' for word in field.words)}."
    most = field.bounds.most_of(limits)
    if most is not None and {Shape.WHOLE, Shape.NUMBER} & {*field.shapes}:
        yield f"From {field.bounds.least} to {most}."
    if field.required:
        yield "It is required."
    elif field.default != "none":
        yield f"Without it: {field.default}."


def _value(file: Definition, found: Found, offset: int) -> Hover | None:
    spot = found.spot
    node = spot.node
    if not isinstance(node, ScalarNode):
        return None
    if step := step_at(file, offset):
        return Hover(file.extent(node), _step(file, step))
    if spot.attribute == "type" and spot.around is not None and is_step(spot.around.kind):
        step = file.outline.by_node(spot.around.node)
        return None if step is None else Hover(file.extent(node), _step(file, step))
    text = _read(file, spot, node)
    return None if text is None else Hover(file.extent(node), f"`{node.text}` is {text}.")


def _read(file: Definition, spot: Spot, node: ScalarNode) -> str | None:
    """What a reference or a path reads."""
    step = step_around(file, spot)
    known = None if step is None else file.known.get(step.path)
    if known is None or not isinstance(node.value, str) or not node.text.startswith("$"):
        return None
    if spot.attribute == "source":
        return source_in_words(known, list_around(spot), node.text)
    return path_in_words(known, node.text) if is_by_path(spot) else None


def _step(file: Definition, step: StepEntry) -> str:
    return "\n\n".join(_step_in_words(step, file.known.get(step.path)))


def _step_in_words(step: StepEntry, known: KnownStep | None) -> Iterator[str]:
    title = STEPS[step.type].title if step.type in STEPS else "a step"
    yield f"**{step.name}**: {title}"
    called = text_of(attribute_of(step.node, "resourceArn")) or text_of(attribute_of(step.node, "action"))
    if called:
        pattern = text_of(attribute_of(step.node, "pattern"))
        yield f"Calls `{called}`" + (f" with the pattern `{pattern}`." if pattern else ".")
    if known is None:
        return
    if known.facts is None:
        yield "It never runs."
        return
    yield f"Input: {keys_in_words(known.facts.input)}."
    output = outputs_of(known.facts)
    yield "It never ends well." if output is None else f"Output: {keys_in_words(output)}."
