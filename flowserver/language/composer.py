"""YAML events to located nodes, on an explicit stack.

Charges depth and size, aliases followed, before it builds; refuses tags, duplicate keys, merge keys and keys that
are no scalars. A finding stops the build only if going on would cost too much.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from flowserver.base.limits import Limits
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import CheckingStopped, Report, shown
from flowserver.language.graph import Span
from flowserver.language.hints import Hint
from flowserver.language.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from flowserver.language.scalars import plain_value

_REF_TAG = "!Ref"
_HALF_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Built:
    """A finished node. `size` counts its values, `characters` their text, `height` its levels, aliases followed."""

    node: Node
    characters: int
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet; a mapping's children are keys and values in turn."""

    event: Any
    children: list[_Built] = field(default_factory=list)
    end: tuple[int, int] = (0, 0)


class NodeBuilder:
    """Feed it every event with `take`, then read `root`, which is None if there was no document."""

    def __init__(self, text: str, limits: Limits, report: Report, work: Work, ref_keys: frozenset[str]) -> None:
        self.root: Node | None = None
        self._text = text
        self._limits = limits
        self._report = report
        self._work = work
        self._ref_keys = ref_keys
        self._open: list[_Open] = []
        self._anchors: dict[str, _Built | None] = {}
        self._size = 0
        self._characters = 0

    def take(self, event: Any) -> None:
        """Take the next event; raises CheckingStopped when a limit is passed."""
        self._work.spend(1)
        match event:
            case yaml.ScalarEvent():
                self._add(event, _Built(self._scalar(event), len(event.value)), event.end_mark)
            case yaml.AliasEvent():
                self._add(event, self._aliased(event), event.end_mark)
            case yaml.CollectionStartEvent():
                self._start(event)
            case yaml.CollectionEndEvent():
                self._finish(event)
            case yaml.DocumentStartEvent() if self.root is not None:
                self._report.error("many-documents", _span(event), "there is more than one document in this text")
                raise CheckingStopped

    def _start(self, event: Any) -> None:
        self._check_tag(event)
        self._check_depth(event, 1)
        self._charge(event, 1, 0)
        if event.anchor:
            self._anchors[event.anchor] = None  # known, but not finished: an alias to it would contain itself
        self._open.append(_Open(event))

    def _finish(self, event: Any) -> None:
        done = self._open.pop()
        start = done.event
        mark = (event.end_mark.line, event.end_mark.column)
        end = mark if start.flow_style or not done.children else done.end  # a block ends where its last value does
        span = Span(start.start_mark.line + 1, start.start_mark.column + 1, end[0] + 1, end[1] + 1)
        if isinstance(start, yaml.MappingStartEvent):
            node: Node = MapNode(self._entries(done.children), span)
        else:
            node = ListNode(tuple(child.node for child in done.children), span)
        size = 1 + sum(child.size for child in done.children)
        characters = sum(child.characters for child in done.children)
        height = 1 + max((child.height for child in done.children), default=0)
        self._place(start, _Built(node, characters, size, height), end)

    def _add(self, event: Any, built: _Built, mark: Any) -> None:
        self._charge(event, built.size, built.characters)
        self._place(event, built, (mark.line, mark.column))

    def _place(self, event: Any, built: _Built, end: tuple[int, int]) -> None:
        if event.anchor and not isinstance(event, yaml.AliasEvent):
            self._anchors[event.anchor] = built
        if not self._open:
            self.root = built.node
            return
        self._open[-1].children.append(built)
        self._open[-1].end = end

    def _aliased(self, event: Any) -> _Built:
        built = self._anchors.get(event.anchor)
        if built is None:
            within = event.anchor in self._anchors
            reason = "contains this alias" if within else "is not defined above"
            hint = None if within else Hint.IN_QUOTES.of()
            self._report.error("bad-alias", _span(event), f"the anchor {shown(event.anchor)} {reason}", hint)
            return _Built(ScalarNode(text := f"*{event.anchor}", text, _span(event)), 0)
        self._check_depth(event, built.height)
        return built

    def _check_depth(self, event: Any, height: int) -> None:
        maximum = self._limits.definition_depth_max
        if len(self._open) + height > maximum:
            self._report.error("nesting-too-deep", _span(event), f"nested deeper than {maximum} levels")
            raise CheckingStopped

    def _charge(self, event: Any, size: int, characters: int) -> None:
        """Charge an event's values and characters before anything is built from it."""
        self._size += size
        self._characters += characters
        if self._size > (maximum := self._limits.definition_nodes_max):
            self._report.error("too-many-nodes", _span(event), f"a definition has at most {maximum} values")
            raise CheckingStopped
        if self._characters > (maximum := self._limits.definition_characters_max):
            message = f"a definition has at most {maximum} characters, counting aliases as what they repeat"
            self._report.error("too-much-text", _span(event), message)
            raise CheckingStopped

    def _check_tag(self, event: Any) -> None:
        if event.tag is not None:
            hint = Hint.REF_ELSEWHERE.of() if event.tag == _REF_TAG else None
            message = f"the YAML tag {shown(event.tag)} is not allowed here"
            self._report.error("tag-not-allowed", _span(event), message, hint)

    def _scalar(self, event: Any) -> ScalarNode:
        span = _span(event)
        is_ref = event.tag == _REF_TAG and self._stands_under_ref_key()
        if not is_ref:
            self._check_tag(event)
        if _HALF_PAIR.search(event.value):  # only from an escape, which not every YAML parser refuses
            self._report.error("bad-character", span, "this text holds half a surrogate pair")
        inset = self._inset(event)
        if event.style or is_ref:
            return ScalarNode(event.value, event.value, span, inset, is_ref)
        try:
            return ScalarNode(plain_value(event.value), event.value, span, inset)
        except ValueError as error:
            self._report.error("bad-number", span, str(error), Hint.NUMBER_IN_QUOTES.of())
            return ScalarNode(event.value, event.value, span, inset)

    def _stands_under_ref_key(self) -> bool:
        around = self._open[-1] if self._open else None
        if around is None or not isinstance(around.event, yaml.MappingStartEvent) or len(around.children) % 2 == 0:
            return False
        key = around.children[-1].node
        return isinstance(key, ScalarNode) and key.text in self._ref_keys

    def _inset(self, event: Any) -> int | None:
        """0 for a plain, 1 for a quoted scalar whose value equals the source text character by character, else None."""
        start = event.start_mark.index
        for inset in (0, 1):
            if self._text.startswith(event.value, start + inset):
                return inset if event.end_mark.index == start + len(event.value) + 2 * inset else None
        return None

    def _entries(self, children: list[_Built]) -> tuple[Entry, ...]:
        entries: dict[str, Entry] = {}
        for key, value in zip(children[::2], children[1::2], strict=True):
            name = self._name(key.node)
            if name is None:
                continue
            if name in entries:
                line = entries[name].key_span.line
                self._report.error("duplicate-key", key.node.span, f"the key {shown(name)} is in line {line} already")
                continue
            entries[name] = Entry(name, key.node.span, value.node)
        return tuple(entries.values())

    def _name(self, key: Node) -> str | None:
        if not isinstance(key, ScalarNode):
            self._report.error("bad-key", key.span, "a key must be a text")
            return None
        if key.text == "<<" and key.inset == 0:
            self._report.error("merge-key", key.span, "the merge key `<<` is not supported", Hint.MERGE_KEY.of())
            return None
        return key.text


def _span(event: Any) -> Span:
    start, end = event.start_mark, event.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)
