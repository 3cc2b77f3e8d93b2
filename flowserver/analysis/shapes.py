"""What is known of a JSON value before the flow runs: an abstraction that holds for every execution.

A shape represents a set of values. `look_up` says of a path whether it finds something in all of them, in none, or
whether that is not known. Shapes that meet are joined, and the result represents both; nesting is bounded, so that a
loop that wraps its data once more each time has a last shape. So is its size: data that holds what was there several
times grows as a power of the steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from flowserver.base.json_values import Json
from flowserver.expressions.paths import EVERY, Segment

DEPTH_MAX: Final = 6
"""Levels of a shape; what is deeper is not known."""

PARTS_MAX: Final = 300
"""Keys and elements of the value of a key, with those in them; nothing is known of a value that has more."""


@dataclass(frozen=True, slots=True)
class Anything:
    """Any value."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, a number, a boolean or null."""

    kind: str
    constant: str | None = None
    """The text, if the definition has it, and so each execution has the same."""


@dataclass(frozen=True, slots=True)
class Array:
    """A list; `item` represents each of its elements, and is None if the list is empty.

    `elements` represent them one by one, if it is known how many there are, as of a parallel step's branches.
    """

    item: "Shape | None"
    elements: "tuple[Shape, ...] | None" = None
    size: int = field(init=False, compare=False, repr=False)
    height: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "size", 1 + size_of(self.item) + sum(1 + size_of(each) for each in self.elements or ())
        )
        object.__setattr__(self, "height", 1 + _height_of(self.item))


@dataclass(frozen=True, slots=True)
class Part:
    """The value of a key; `is_sure` if every object that the shape represents has the key."""

    shape: "Shape"
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Document:
    """An object; it has no other keys than `parts`, unless it `is_open`."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    is_open: bool = False
    size: int = field(init=False, compare=False, repr=False)
    height: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        shapes = [part.shape for part in self.parts.values()]
        object.__setattr__(self, "size", len(shapes) + sum(map(size_of, shapes)))
        object.__setattr__(self, "height", 1 + max(map(_height_of, shapes), default=0))


Shape = Anything | Scalar | Array | Document


def size_of(shape: Shape | None) -> int:
    """How many keys and elements a shape has, with those in them."""
    return shape.size if isinstance(shape, (Array, Document)) else 0


def _height_of(shape: Shape | None) -> int:
    return shape.height if isinstance(shape, (Array, Document)) else 0


ANYTHING: Final = Anything()
NULL: Final = Scalar("null")
EMPTY: Final = Document()
UNKNOWN_OBJECT: Final = Document(is_open=True)


class Presence(Enum):
    """Whether a path finds something in the values that a shape represents."""

    ALWAYS = "always"
    NEVER = "never"
    SOMETIMES = "sometimes"
    UNKNOWN = "unknown"


def shape_of(value: Json, depth: int = 0) -> Shape:
    """The shape of a constant."""
    if depth >= DEPTH_MAX:
        return ANYTHING
    if isinstance(value, dict):
        return Document({key: Part(shape_of(item, depth + 1)) for key, item in value.items()})
    if isinstance(value, list):
        joined: Shape | None = None
        for item in value:
            joined = join(joined, shape_of(item, depth + 1))
        return Array(joined)
    if isinstance(value, str):
        return Scalar("text", value)
    return Scalar("null" if value is None else "boolean" if isinstance(value, bool) else "number")


def join(one: Shape | None, other: Shape | None) -> Shape:
    """The shape that represents the values of both; None represents no value."""
    return _fitting(_join(one, other))


def _fitting(shape: Shape) -> Shape:
    """The shape, if it is not too large. Of a list its elements may be, one by one, and not what they have together."""
    if isinstance(shape, Array) and shape.elements is not None and shape.size > PARTS_MAX:
        shape = Array(shape.item)
    return shape if size_of(shape) <= PARTS_MAX else ANYTHING


def _join(one: Shape | None, other: Shape | None) -> Shape:
    if one is None or other is None or one == other:
        found = other if one is None else one
        return ANYTHING if found is None else found
    if isinstance(one, Scalar) and isinstance(other, Scalar) and one.kind == other.kind:
        return Scalar(one.kind)
    if isinstance(one, Array) and isinstance(other, Array):
        item = None if one.item is None and other.item is None else join(one.item, other.item)
        return Array(item, _join_elements(one.elements, other.elements))
    if isinstance(one, Document) and isinstance(other, Document):
        return join_documents(one, other)
    return ANYTHING


def _join_elements(one: tuple[Shape, ...] | None, other: tuple[Shape, ...] | None) -> tuple[Shape, ...] | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(join(here, there) for here, there in zip(one, other, strict=True))


def join_documents(one: Document, other: Document) -> Document:
    """The object that represents both."""
    parts: dict[str, Part] = {}
    for key in (*one.parts, *(key for key in other.parts if key not in one.parts)):
        here, there = one.parts.get(key), other.parts.get(key)
        if here is not None and there is not None:
            parts[key] = Part(join(here.shape, there.shape), here.is_sure and there.is_sure)
        else:
            lacking = other if there is None else one
            known = here or there
            assert known is not None
            parts[key] = Part(ANYTHING if lacking.is_open else known.shape, is_sure=False)
    return Document(parts, one.is_open or other.is_open)


def compared(one: Document, other: Document) -> int:
    """How many parts of one are compared with those of the other when the two are joined."""
    pairs = ((part.shape, other.parts.get(key)) for key, part in one.parts.items())
    return sum(size_of(shape) for shape, there in pairs if there is not None and there.shape is not shape)


def overlaid(below: Document, above: Document) -> Document:
    """The keys of `above` over those of `below`, as steps merge them."""
    parts = dict(below.parts)
    if above.is_open:
        parts = {key: Part(ANYTHING, part.is_sure) for key, part in parts.items()}
    for key, part in above.parts.items():
        under = parts.get(key)
        if part.is_sure:
            parts[key] = part
        elif under is not None:
            parts[key] = Part(join(part.shape, under.shape), under.is_sure)
        else:
            parts[key] = Part(ANYTHING if below.is_open else part.shape, is_sure=False)
    return Document(parts, below.is_open or above.is_open)


def cut(shape: Shape, depth: int = 0) -> Shape:
    """The shape with nothing known below DEPTH_MAX levels, nor of a value of more than PARTS_MAX."""
    shape = _fitting(shape)
    if depth + _height_of(shape) <= DEPTH_MAX:
        return shape
    if isinstance(shape, Document) and depth < DEPTH_MAX:
        parts = {key: Part(cut(part.shape, depth + 1), part.is_sure) for key, part in shape.parts.items()}
        return Document(parts, shape.is_open)
    if isinstance(shape, Array) and depth < DEPTH_MAX:
        elements = None if shape.elements is None else tuple(cut(each, depth + 1) for each in shape.elements)
        return Array(None if shape.item is None else cut(shape.item, depth + 1), elements)
    return ANYTHING


def look_up(shape: Shape, segments: tuple[Segment, ...]) -> tuple[Presence, Shape]:
    """Whether a path finds something, and what, if it does; of NEVER the shape is `null`.

    A `[*]` of a list always finds a list. It counts as NEVER if nothing can ever be in that list, and its shape is that
    of the empty list.
    """
    presence = Presence.ALWAYS
    for position, segment in enumerate(segments):
        if segment is EVERY:
            return _look_up_each(shape, segments[position + 1 :], presence)
        found, shape = _step(shape, segment)
        if found is Presence.NEVER:
            return found, shape
        if found is Presence.UNKNOWN:
            return found, shape if position + 1 == len(segments) else ANYTHING
        if found is Presence.SOMETIMES:
            presence = found
    return presence, shape


def _look_up_each(shape: Shape, rest: tuple[Segment, ...], presence: Presence) -> tuple[Presence, Shape]:
    if isinstance(shape, Anything):
        return Presence.UNKNOWN, Array(ANYTHING)
    if not isinstance(shape, Array):
        return Presence.NEVER, NULL
    if shape.item is None:
        return presence, Array(None)
    if EVERY in rest:
        return presence, Array(ANYTHING)
    found, item = look_up(shape.item, rest)
    if found is Presence.NEVER:
        return Presence.NEVER, Array(None)
    return presence, Array(item)


def _step(shape: Shape, segment: Segment) -> tuple[Presence, Shape]:
    match shape:
        case Anything():
            return Presence.UNKNOWN, ANYTHING
        case Document() if isinstance(segment, str):
            part = shape.parts.get(segment)
            if part is not None:
                unsure = Presence.UNKNOWN if shape.is_open else Presence.SOMETIMES
                return (Presence.ALWAYS if part.is_sure else unsure), part.shape
            return (Presence.UNKNOWN, ANYTHING) if shape.is_open else (Presence.NEVER, NULL)
        case Array(item, elements) if isinstance(segment, int):
            if elements is not None and segment < len(elements):
                return Presence.ALWAYS, elements[segment]
            if item is not None and elements is None:
                return Presence.SOMETIMES, item
    return Presence.NEVER, NULL
