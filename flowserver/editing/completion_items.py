"""Entries of an editor's list of completions."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from flowserver.language.fields import Field, ObjectKind, Shape

_PLACEHOLDER: Final = re.compile(r"\$\d+")


class ItemKind(Enum):
    """What an entry is, for its symbol."""

    ATTRIBUTE = "attribute"
    WORD = "word"
    STEP = "step"
    REFERENCE = "reference"
    RESOURCE = "resource"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True)
class Item:
    """An entry. `insert` is put in the place of the word; with `is_snippet` it has places to fill in: `$1`, `$2`."""

    label: str
    kind: ItemKind
    insert: str
    detail: str = ""
    documentation: str = ""
    is_snippet: bool = False

    @property
    def plain(self) -> str:
        """What is put for an editor that knows no snippets."""
        return _PLACEHOLDER.sub("", self.insert) if self.is_snippet else self.insert


def word(label: str, kind: ItemKind = ItemKind.WORD, detail: str = "", documentation: str = "") -> Item:
    """An entry that puts its label."""
    return Item(label, kind, label, detail, documentation)


@dataclass(frozen=True, slots=True)
class Layout:
    """How keys are written at a place: `indent` are the blanks of a further line, past those of the present one."""

    is_flow: bool = False
    """In braces or brackets, or in quotes."""
    is_bare: bool = False
    """The key alone: what comes after it is there, or the place is in quotes."""
    indent: str = ""
    dash: str = ""
    """What an entry of a list begins with that is not written yet."""


def attribute(field: Field, layout: Layout) -> Item:
    """An entry for a key with the beginning of its value."""
    documentation = field.doc if field.default == "none" else f"{field.doc} Without it: {field.default}."
    detail = "required" if field.required else " or ".join(shape.value for shape in field.shapes)
    if layout.is_bare:
        return Item(field.name, ItemKind.ATTRIBUTE, field.name, detail, documentation)
    insert = f"{layout.dash}{field.name}:{_value(field, layout, 1)}"
    return Item(field.name, ItemKind.ATTRIBUTE, insert, detail, documentation, is_snippet=True)


def _value(field: Field, layout: Layout, number: int) -> str:
    """The beginning of a value, with a place to fill in."""
    inner = f"\n{layout.indent}{' ' * len(layout.dash)}  "
    if Shape.LIST in field.shapes and Shape.TEXT not in field.shapes:
        return f" [${number}]" if layout.is_flow else f"{inner}- ${number}"
    if field.shapes == (Shape.MAP,):
        return f" {{${number}}}" if layout.is_flow else f"{inner}${number}"
    return f" ${number}"


def whole_step(name: str, kind: ObjectKind, layout: Layout) -> Item:
    """An entry that puts a step with all that it must have."""
    fields = [field for field in kind.fields.values() if _is_needed(kind, field)]
    values = [f" {name}" if field.name == "type" else _value(field, layout, at) for at, field in enumerate(fields)]
    lines = [f"{field.name}:{value}" for field, value in zip(fields, values, strict=True)]
    between = ", " if layout.is_flow else f"\n{layout.indent}{' ' * len(layout.dash)}"
    insert = layout.dash + between.join(lines)
    return Item(f"{name} step", ItemKind.TEMPLATE, insert, "template", f"{kind.title} with what it needs.", True)


def _is_needed(kind: ObjectKind, field: Field) -> bool:
    return field.required or field.name in (*kind.exactly_one[:1], *kind.at_least_one[:1])
