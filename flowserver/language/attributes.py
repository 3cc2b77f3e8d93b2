"""Checks an object's attributes against the table of fields: unknown ones, missing ones, wrong types.

Also the small checks that many attributes share: ranges, lengths, expressions at their columns.
"""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, TypeVar

from flowserver.base.limits import Limits
from flowserver.expressions.errors import ExpressionError
from flowserver.expressions.paths import compile_path
from flowserver.expressions.references import Root
from flowserver.language.check_cost import UNIT_CHARACTERS, Work
from flowserver.language.diagnostics import Report, shown
from flowserver.language.fields import HOLDS, KINDS, Field, ObjectKind, Shape
from flowserver.language.graph import Span
from flowserver.language.hints import Hint
from flowserver.language.nodes import Entry, ListNode, MapNode, Node, ScalarNode

_N = TypeVar("_N", ScalarNode, ListNode, MapNode)
_T = TypeVar("_T")


# What YAML 1.1 read as booleans, and quoted ones.
_BOOLEAN_WORDS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}


_DIGITS: Final = re.compile("[0-9]{1,9}")
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]{0,39}", re.ASCII)

_ROOTED: Final = re.compile(rf"\$(?:{'|'.join(Root)})(?:\.\w{{1,64}}){{1,16}}\Z")
"""A plain reference, such as `$input.order.ids`."""


class Attributes:
    """The attributes of one object that are known and of the right shape.

    `span` is the whole object, `head` its first key; `written` names every attribute, also those refused, but not
    those that a lenient check leaves out.
    """

    def __init__(self, kind: ObjectKind, node: MapNode, kept: dict[str, Entry], left_out: Collection[str]) -> None:
        self.kind = kind
        self.span = node.span
        self.head = _head(node)
        self.written = frozenset(entry.name for entry in node.entries if entry.name not in left_out)
        self._entries = kept

    def get(self, name: str, node_type: type[_N]) -> _N | None:
        """The value of an attribute if it is there and a node of this type."""
        entry = self._entries.get(name)
        return entry.value if entry and isinstance(entry.value, node_type) else None

    def any(self, name: str) -> Node | None:
        """The value of an attribute, of any type."""
        entry = self._entries.get(name)
        return entry.value if entry else None

    def key_span(self, name: str) -> Span:
        """The place of the attribute's name; the object's first key if the attribute is missing."""
        entry = self._entries.get(name)
        return entry.key_span if entry else self.head


class AttributeReader:
    """Reads attributes and reports what is wrong with them; the limits are those in force.

    Aliases let one node appear in many places. Work that costs more than a look at a node is done once per node.
    """

    def __init__(self, report: Report, limits: Limits, work: Work) -> None:
        self.report = report
        self.limits = limits
        self.work = work
        self._compiled: dict[tuple[Node, Callable[[str], Any]], Any] = {}
        self._seen: set[Node] = set()

    def is_first_look(self, node: Node) -> bool:
        """Whether the node is seen for the first time. Its further aliases would only repeat the same findings."""
        if node in self._seen:
            return False
        self._seen.add(node)
        return True

    def read(self, node: Node, kind: ObjectKind) -> Attributes | None:
        """The attributes of an object, or None if the node is no mapping."""
        if not isinstance(node, MapNode):
            self.report.error("wrong-type", node.span, f"{kind.title} must be a mapping")
            return None
        self.work.spend(1 + len(node.entries))
        left_out: set[str] = set()
        kept = {entry.name: entry for entry in node.entries if self._accept(entry, kind, left_out)}
        attributes = Attributes(kind, node, kept, left_out)
        for field in kind.fields.values():
            if field.required and field.name not in attributes.written:
                self.report.error("missing-attribute", attributes.head, f"{kind.title} needs `{field.name}`")
        self._check_groups(attributes)
        return attributes

    def _check_groups(self, attributes: Attributes) -> None:
        """Report attributes of which too few or too many are written."""
        kind, written = attributes.kind, attributes.written
        if kind.exactly_one and len(written.intersection(kind.exactly_one)) != 1:
            names = " and ".join(f"`{name}`" for name in kind.exactly_one)
            self.report.error("exactly-one", attributes.head, f"{kind.title} needs exactly one of {names}")
        if kind.at_least_one and written.isdisjoint(kind.at_least_one):
            names = ", or at least ".join(f"`{name}`" for name in kind.at_least_one)
            self.report.error("missing-attribute", attributes.head, f"{kind.title} needs {names}")
        for one, other in kind.at_most_one:
            if written >= {one, other}:
                message = f"only one of `{one}` and `{other}` can be given"
                self.report.error("exactly-one", attributes.key_span(other), message)

    def _accept(self, entry: Entry, kind: ObjectKind, left_out: set[str]) -> bool:
        field = kind.fields.get(entry.name)
        if field is None:
            message = f"{shown(entry.name)} is not an attribute of {kind.title}"
            hint = self.work.similar(entry.name, kind.fields) or _owner_hint(entry.name)
            self.report.error("unknown-attribute", entry.key_span, message, hint)
            return False
        if not any(shape.fits(entry.value) for shape in field.shapes):
            if not field.required and isinstance(entry.value, ScalarNode) and entry.value.value is None:
                if self.report.lenient:
                    left_out.add(entry.name)
                self.report.error(
                    "empty-attribute", entry.key_span, f"`{field.name}` has no value", Hint.LEAVE_OUT.of()
                )
                return False
            wanted = " or ".join(field.title_of(shape) for shape in field.shapes)
            message = f"`{field.name}` must be {wanted}"
            self.report.error("wrong-type", entry.value.span, message, self._type_hint(entry.value, field))
            return False
        return True

    def _type_hint(self, node: Node, field: Field) -> str | None:
        """What to write in place of a value of the wrong type."""
        if isinstance(node, MapNode):
            return Hint.BRACKETS_AROUND.of() if Shape.LIST in field.shapes and field.name in HOLDS else None
        if not isinstance(node, ScalarNode) or node.value is None:
            return None
        if Shape.TEXT in field.shapes:
            if field.takes(node.text):
                return Hint.IN_QUOTES.of()
            return Hint.FOR_EXAMPLE.of(name=field.name, example=field.example) if field.example else None
        return self.text_hint(node.text, field) if isinstance(node.value, str) else None

    def text_hint(self, text: str, field: Field) -> str | None:
        """A hint for a text in a place that needs another type."""
        word = text.lower()
        if Shape.LIST in field.shapes and field.name not in HOLDS and _NAME.fullmatch(text):
            return Hint.LIST_OF_ONE.of(text=text)
        if Shape.BOOLEAN in field.shapes and word in _BOOLEAN_WORDS:
            return Hint.BOOLEAN.of(word=_BOOLEAN_WORDS[word])
        if field.shapes[0] not in (Shape.WHOLE, Shape.NUMBER) or not _DIGITS.fullmatch(text):
            return None
        most = field.bounds.most_of(self.limits)
        fits = field.bounds.least <= int(text) and (most is None or int(text) <= most)
        return Hint.WITHOUT_QUOTES.of() if fits else None

    def entries(self, attributes: Attributes, name: str, kind: ObjectKind) -> Iterator[Attributes]:
        """The objects of a list attribute, one after the other; those that are no mappings are reported."""
        node = attributes.get(name, ListNode)
        for item in node.items if node else ():
            entry = self.read(item, kind)
            if entry is not None:
                yield entry

    def text(self, attributes: Attributes, name: str) -> str | None:
        """A text within the bounds of its field, or None if it is not there or was reported."""
        node = attributes.get(name, ScalarNode)
        if node is None:
            return None
        bounds = attributes.kind.fields[name].bounds
        most = bounds.most_of(self.limits)
        if len(node.text) < bounds.least:
            self.report.error("bad-value", node.span, f"`{name}` must not be empty")
            return None
        if most is not None and len(node.text) > most:
            self.report.error("bad-value", node.span, f"`{name}` has at most {most} characters")
            return None
        return node.text

    def number(self, attributes: Attributes, name: str) -> int | float | None:
        """A number within the bounds of its field, or None if it is not there or was reported."""
        node = attributes.get(name, ScalarNode)
        value = node.value if node else None
        if node is None or not isinstance(value, (int, float)):
            return None
        bounds = attributes.kind.fields[name].bounds
        most = bounds.most_of(self.limits)
        assert most is not None
        if not bounds.least <= value <= most:
            self.report.error("bad-value", node.span, f"`{name}` must be from {bounds.least} to {most}")
            return None
        return value

    def whole(self, attributes: Attributes, name: str) -> int | None:
        """A whole number within the bounds of its field, or None if it is not there or was reported."""
        value = self.number(attributes, name)
        return None if value is None else int(value)

    def compiled(self, node: ScalarNode, compile_text: Callable[[str], _T], id: str) -> _T | None:
        """The compiled expression of a scalar, or None if it was reported, at the column of the mistake."""
        key = (node, compile_text)
        if key not in self._compiled:
            self._compiled[key] = self._compile(node, compile_text, id)
        compiled: _T | None = self._compiled[key]
        return compiled

    def _compile(self, node: ScalarNode, compile_text: Callable[[str], _T], id: str) -> _T | None:
        self.work.spend(1 + len(node.text) // UNIT_CHARACTERS)
        self.work.compiled += 1
        try:
            return compile_text(node.text)
        except ExpressionError as error:
            hint = rooted_hint(node.text) if compile_text is compile_path else None
            self.report.error(id, expression_span(node, error.offset), error.message, hint)
            return None


def rooted_hint(text: str) -> str | None:
    """What to write for a reference such as `$input.order.ids` where a path into the step's input is wanted."""
    if not _ROOTED.match(text):
        return None
    key = text.rpartition(".")[2]
    return Hint.THROUGH_INPUT.of(key=key, text=text)


def expression_span(node: ScalarNode, offset: int) -> Span:
    """The place of one character of a scalar's text; the whole scalar where the text is not written as it is."""
    span = node.span
    if node.inset is None or span.line != span.end_line:
        return span
    column = span.column + node.inset + offset
    return Span(span.line, column, span.line, column + 1)


def _head(node: MapNode) -> Span:
    return node.entries[0].key_span if node.entries else node.span


def _owner_hint(name: str) -> str | None:
    owners = [other.title for other in KINDS if name in other.fields]
    if not owners:
        return None
    return Hint.BELONGS_TO.of(
        name=name, owners=" or ".join([", ".join(owners[:-1]), *owners[-1:]] if owners[1:] else owners)
    )
