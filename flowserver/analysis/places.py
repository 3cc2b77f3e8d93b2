"""Where the parts of a step are written: spans of mapping entries, catch rules and parameters.

The graph has the spans of steps alone; the rest is found in the text's nodes, which are read again.
"""

from flowserver.base.limits import Limits
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import Report
from flowserver.language.graph import Span
from flowserver.language.nodes import ListNode, MapNode, Node, ScalarNode
from flowserver.language.parser import REF_KEYS
from flowserver.language.source import read_source


class Places:
    """The nodes of a definition that was accepted."""

    def __init__(self, text: str, limits: Limits, work: Work | None = None) -> None:
        """`work` is paused meanwhile."""
        work = work or Work()
        self._root = read_source(text, limits, Report(lenient=True), work, REF_KEYS)
        self._by_span: dict[Span, Node] = {}
        todo = [self._root]
        while todo:
            work.spend(1)
            node = todo.pop()
            if isinstance(node, MapNode) and node.span not in self._by_span:
                self._by_span[node.span] = node
                todo.extend(entry.value for entry in node.entries)
            elif isinstance(node, ListNode):
                todo.extend(node.items)

    def of_step(self, step: Span, *keys: str | int) -> Span:
        """The place of a part of a step; of the last part that is there, else of the step's name."""
        return self._follow(self._by_span.get(step), step, keys)

    def of_text(self, step: Span, *keys: str | int, text: str) -> Span:
        """The place of a text in a list that is a part of a step; of the list, if the text is not written there."""
        node = self._by_span.get(step)
        for key in keys:
            if isinstance(node, MapNode):
                node = next((entry.value for entry in node.entries if entry.name == key), None)
            elif isinstance(node, ListNode) and isinstance(key, int) and key < len(node.items):
                node = node.items[key]
        items = node.items if isinstance(node, ListNode) else ()
        found = (item.span for item in items if isinstance(item, ScalarNode) and item.text == text)
        return next(found, self.of_step(step, *keys))

    def of_flow(self, *keys: str | int) -> Span:
        """The place of a part of the flow."""
        return self._follow(self._root, Span(1, 1, 1, 2), keys)

    def name_of(self, step: Span) -> Span:
        """The place of a step's name."""
        return self.of_step(step, "name")

    def _follow(self, node: Node | None, default: Span, keys: tuple[str | int, ...]) -> Span:
        span = default
        if isinstance(node, MapNode):
            span = next((entry.value.span for entry in node.entries if entry.name == "name"), default)
        for key in keys:
            if isinstance(node, MapNode):
                entry = next((entry for entry in node.entries if entry.name == key), None)
                node = None if entry is None else entry.value
                span = span if entry is None else _head(entry.key_span, entry.value)
            elif isinstance(node, ListNode) and isinstance(key, int) and key < len(node.items):
                node = node.items[key]
                span = _head(node.span, node)
            else:
                break
        return span


def _head(span: Span, node: Node) -> Span:
    """The place of a scalar; of a list or a mapping its key, or its first line."""
    if isinstance(node, (ListNode, MapNode)):
        end = span.end_column if span.end_line == span.line else span.column + 1
        return Span(span.line, span.column, span.line, end)
    return node.span
