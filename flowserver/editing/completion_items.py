"""Entries of an editor's list of completions."""

import json
import re
from dataclasses import dataclass, replace
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
    is_json: bool = False
    """In a JSON file: keys and texts need quotes."""


def attribute(field: Field, layout: Layout) -> Item:
    """An entry for a key with the beginning of its value."""
    documentation = field.doc if field.default == "none" else f"{field.doc} Without it: {field.default}."
    detail = "required" if field.required else " or ".join(shape.value for shape in field.shapes)
    if layout.is_bare:
        return Item(field.name, ItemKind.ATTRIBUTE, field.name, detail, documentation)
    insert = f"{layout.dash}{_key(field.name, layout)}:{_value(field, layout, 1)}"
    return Item(field.name, ItemKind.ATTRIBUTE, insert, detail, documentation, is_snippet=True)


def name_with_value(name: str, kind: ItemKind, detail: str, documentation: str, layout: Layout) -> Item:
    """An entry for a key that is no attribute, with a place for its value."""
    if layout.is_bare:
        return Item(name, kind, name, detail, documentation)
    return Item(name, kind, f"{_key(name, layout)}: $1", detail, documentation, is_snippet=True)


def in_quotes(item: Item) -> Item:
    """The entry of a value that is a text, as JSON has it."""
    return replace(item, insert=json.dumps(item.insert, ensure_ascii=False))


def _key(name: str, layout: Layout) -> str:
    return f'"{name}"' if layout.is_json else name


def _value(field: Field, layout: Layout, number: int) -> str:
    """The beginning of a value, with a place to fill in."""
    inner = f"\n{layout.indent}{' ' * len(layout.dash)}  "
    if Shape.LIST in field.shapes and Shape.TEXT not in field.shapes:
        return f" [${number}]" if layout.is_flow else f"{inner}- ${number}"
    if field.shapes == (Shape.MAP,):
        return f" {{${number}}}" if layout.is_flow else f"{inner}${number}"
    if layout.is_json and field.shapes == (Shape.TEXT,):
        return f' "${number}"'
    return f" ${number}"


def whole_step(name: str, kind: ObjectKind, layout: Layout) -> Item:
    """An entry that puts a step with all that it must have."""
    fields = [field for field in kind.fields.values() if _is_needed(kind, field)]
    own = f" {_key(name, layout)}"
    values = [own if field.name == "type" else _value(field, layout, at) for at, field in enumerate(fields)]
    lines = [f"{_key(field.name, layout)}:{value}" for field, value in zip(fields, values, strict=True)]
    between = ", " if layout.is_flow else f"\n{layout.indent}{' ' * len(layout.dash)}"
    insert = layout.dash + between.join(lines)
    return Item(f"{name} step", ItemKind.TEMPLATE, insert, "template", f"{kind.title} with what it needs.", True)


def _is_needed(kind: ObjectKind, field: Field) -> bool:
    return field.required or field.name in (*kind.exactly_one[:1], *kind.at_least_one[:1])
