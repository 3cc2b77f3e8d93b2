"""What values the keys of a flow's data have to have, so that made-up data takes every way through the flow.

A definition has no types. But it reads keys: a condition compares `status` with "done", a foreach goes through `parts`,
a wait lasts `delay` seconds. So each name of a key has facts, and names that mappings copy to each other share theirs.
It is enough to know names: `order.id` and `customer.id` are two ids. But one name may be for different things, such as
a list `order.items` and a number `page.items`. Such a name is divided: it has facts of its own in each object. If it
still contradicts itself, because it is for different things in one object, or because other names share its facts, then
what is made up for it is wrong in one place: `KeyKinds.contradict` says so. Other data that is made up from here is not
wrong; it is only not the flow's own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from flowserver.base.clock import parse_instant
from flowserver.base.json_values import Json
from flowserver.expressions.condition_nodes import And, Compare, Literal, Negate, Node, Not, Operator, Or, Select
from flowserver.expressions.paths import EVERY, Path
from flowserver.expressions.references import Reference, Root
from flowserver.language.graph import ChoiceStep, Flow, ForeachStep, Mappings, ParamPath, Step, TaskStep, WaitStep
from flowserver.language.targets import known_parameters

SIZE_MIN_MAX: Final = 100
"""A list is no longer only because an element far behind is read."""


class Kind(Enum):
    """What a value is used as."""

    NUMBER = "number"
    SECONDS = "seconds"
    INSTANT = "instant"
    FLAG = "flag"


@dataclass
class KeyFacts:
    """What is known of the values of some keys."""

    constants: dict[str, Json] = field(default_factory=dict)
    """What conditions compare them with, by kind and text, so that true and 1 are two."""
    kinds: set[Kind] = field(default_factory=set)
    members: dict[str, str] = field(default_factory=dict)
    """The keys that are read in them, each with the name whose facts its values have."""
    element: str | None = None
    """They are lists; the name whose facts the elements have."""
    size_min: int = 0
    """Elements of these lists that are read by their positions."""
    word: str | None = None
    """What their texts are made of instead of their names: they are compared with each other, so they can be equal."""

    @property
    def contradict(self) -> bool:
        """Whether no value has them all: a list is no object, neither is a number or a text, and no number is an
        instant.
        """
        is_scalar = bool(self.kinds) or any(value is not None for value in self.constants.values())
        is_several = (self.element is not None) + bool(self.members) + is_scalar > 1
        return is_several or (Kind.INSTANT in self.kinds and self.is_number) or self.is_also_text

    @property
    def is_number(self) -> bool:
        """Whether a step fails if they are no numbers."""
        return bool(self.kinds & {Kind.NUMBER, Kind.SECONDS})

    @property
    def is_also_text(self) -> bool:
        """Whether conditions compare them with a text that a step which reads them cannot use."""
        texts = [value for value in self.constants.values() if isinstance(value, str)]
        return bool(texts) and (self.is_number or (Kind.INSTANT in self.kinds and not all(map(_is_instant, texts))))

    def add(self, other: "KeyFacts") -> None:
        """Take in what is known of other keys."""
        self.constants |= other.constants
        self.kinds |= other.kinds
        self.members = other.members | self.members
        self.size_min = max(self.size_min, other.size_min)
        self.word = self.word or other.word


def kinds_of(flow: Flow) -> "KeyKinds":
    """The facts of the keys that a flow reads; of names that contradict themselves by the object that has them."""
    kinds = KeyKinds(flow)
    divided = kinds.contradicting
    return KeyKinds(flow, divided) if divided else kinds


class KeyKinds:
    """The facts of every key that a flow reads; the names in `divided` have facts of their own in each object."""

    def __init__(self, flow: Flow, divided: frozenset[str] = frozenset()) -> None:
        self._divided = divided
        self._parents: dict[str, str] = {}
        self._facts: dict[str, KeyFacts] = {}
        self._read_mappings(flow.input_mappings)
        self._read_mappings(flow.output_mappings)
        for steps in flow.lists:
            for step in steps.steps:
                self._read_step(step)

    def of(self, name: str) -> KeyFacts:
        """The facts of a key."""
        return self._facts.setdefault(self._root(name), KeyFacts())

    @property
    def contradict(self) -> bool:
        """Whether a name is used for different things, so that data made up by names is wrong somewhere."""
        return any(facts.contradict for facts in self._facts.values())

    @property
    def contradicting(self) -> frozenset[str]:
        """The names that are used for different things, or share their facts with such a name."""
        roots = {root for root, facts in self._facts.items() if facts.contradict}
        return frozenset(name for name in (*self._facts, *self._parents) if self._root(name) in roots)

    def _root(self, name: str) -> str:
        parents = self._parents
        while (parent := parents.get(name, name)) != name:
            parents[name] = parents.get(parent, parent)  # so the way is short the next time
            name = parent
        return name

    def _join(self, one: str, other: str) -> None:
        """Let two names share their facts."""
        kept, lost = self._root(one), self._root(other)
        if kept == lost or self._holds(kept, lost) or self._holds(lost, kept):
            return
        facts = self._facts.pop(lost, KeyFacts())
        self._parents[lost] = kept
        mine = self.of(kept)
        both = [(mine.members[key], facts.members[key]) for key in mine.members.keys() & facts.members.keys()]
        mine.add(facts)
        for own, others in sorted(both):
            self._join(own, others)
        mine = self.of(kept)
        if facts.element is not None and mine.element is not None:
            self._join(mine.element, facts.element)
        else:
            mine.element = mine.element or facts.element

    def _holds(self, list_name: str, name: str) -> bool:
        """Whether the elements of lists, at any depth, have the facts of the name: `{target: sizes, source:
        $local[*].sizes}` does not make lists of themselves.
        """
        element = self._facts.get(list_name, KeyFacts()).element
        while element is not None:
            root = self._root(element)
            if root == name:
                return True
            element = self._facts.get(root, KeyFacts()).element
        return False

    def _read_step(self, step: Step) -> None:
        self._read_mappings(step.input_mappings)
        self._read_mappings(step.output_mappings)
        match step:
            case ChoiceStep(options=options):
                for option in options:
                    if option.condition is not None:
                        self._read_truth(option.condition.tree)
            case ForeachStep(collection=collection, item=item):
                name = self._name_of(collection)
                if name is not None:
                    self._join(self._element_of(name), item)
            case WaitStep(duration=duration, timestamp=timestamp):
                self._read_as(duration, Kind.SECONDS)
                self._read_as(timestamp, Kind.INSTANT)
            case TaskStep():
                self._read_params(step)

    def _read_mappings(self, mappings: Mappings | None) -> None:
        for mapping in mappings or ():
            if isinstance(mapping.source, Reference) and mapping.source.root is not Root.CONTEXT:
                name = self._name_of(mapping.source.path)
                if name is not None:
                    self._join(mapping.target, name)

    def _read_params(self, step: TaskStep) -> None:
        known = known_parameters(step.target) or {}
        for key, value in (step.service_params or {}).items():
            for path in paths_in_params(value):
                name = self._name_of(path)
                parameter = known.get(key)
                if name is not None and parameter is not None and "whole number" in parameter.rule:
                    self.of(name).kinds.add(Kind.NUMBER)

    def _read_as(self, value: int | Path | None, kind: Kind) -> None:
        name = self._name_of(value) if isinstance(value, Path) else None
        if name is not None:
            self.of(name).kinds.add(kind)

    def _name_of(self, path: Path) -> str | None:
        """The name of what a path finds; the keys on the way to it are noted. None for a root."""
        name: str | None = None
        is_each = False
        for segment in path.segments:
            if isinstance(segment, str):
                name = segment if name is None else self._member(name, segment)
            else:
                is_each = is_each or segment is EVERY
                if name is not None and isinstance(segment, int):
                    self.of(name).size_min = max(self.of(name).size_min, min(segment + 1, SIZE_MIN_MAX))
                name = None if name is None else self._element_of(name)
        if not is_each or name is None:
            return name
        listed = f"{path.text}*"
        self._join(self._element_of(listed), name)
        return listed

    def _member(self, name: str, key: str) -> str:
        """The name whose facts the values of a key in such objects have."""
        members = self.of(name).members
        return members.setdefault(key, f"{name}.{key}" if key in self._divided else key)

    def _element_of(self, name: str) -> str:
        facts = self.of(name)
        if facts.element is None:
            facts.element = f"{name}[]"
        return facts.element

    def _read_truth(self, node: Node) -> None:
        """Read a condition, or a part of it that is taken as true or false."""
        match node:
            case Select(path):
                name = self._name_of(path)
                if name is not None:
                    self.of(name).kinds.add(Kind.FLAG)
            case Not(operand):
                self._read_truth(operand)
            case And(operands) | Or(operands):
                for operand in operands:
                    self._read_truth(operand)
            case Compare(first, rest):
                for operator, operand in rest:
                    self._read_comparison(first, operator, operand)
            case Literal() | Negate():
                pass

    def _read_comparison(self, one: Node, operator: Operator, other: Node) -> None:
        left = self._name_of(one.path) if isinstance(one, Select) else None
        right = self._name_of(other.path) if isinstance(other, Select) else None
        if operator is Operator.IN and right is not None:
            right = self._element_of(right)
        for name, node in ((left, other), (right, one)):
            constant = _constant(node)
            if name is not None and constant is not None:
                self._compared(name, operator, constant)
        if left is not None and right is not None:
            self._join(left, right)
            self.of(left).word = self.of(left).word or left

    def _compared(self, name: str, operator: Operator, constant: Json) -> None:
        facts = self.of(name)
        values = [constant]
        if isinstance(constant, float):
            whole: Json = int(constant) if constant.is_integer() else constant
            values = [whole - 1, whole, whole + 1]
            if operator in (Operator.EQUAL, Operator.NOT_EQUAL):
                values = [whole, whole + 1]
        elif isinstance(constant, bool):
            values = [constant, not constant]
        for value in values:
            facts.constants[f"{type(value).__name__} {value}"] = value


def _is_instant(text: str) -> bool:
    try:
        parse_instant(text)
    except (ValueError, OverflowError):
        return False
    return True


def _constant(node: Node) -> Json:
    match node:
        case Literal(value):
            return value
        case Negate(Literal(value)) if isinstance(value, float):
            return -value
    return None


def paths_in_params(value: Json | ParamPath) -> Iterator[Path]:
    """The paths in a value of serviceParams."""
    if isinstance(value, ParamPath):
        yield value.path
    elif isinstance(value, dict):
        for each in value.values():
            yield from paths_in_params(each)
    elif isinstance(value, list):
        for each in value:
            yield from paths_in_params(each)
