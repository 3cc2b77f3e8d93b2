"""Mapping lists: each entry's target and its compiled source."""

import re
from difflib import get_close_matches

from flowserver.expressions.references import Constant, Root, Source, compile_source
from flowserver.language.attributes import AttributeReader, Attributes
from flowserver.language.diagnostics import shown
from flowserver.language.fields import MAPPING
from flowserver.language.graph import Mapping, Mappings
from flowserver.language.hints import Hint
from flowserver.language.nodes import ListNode, Node, ScalarNode, to_json

_LIKE_A_PATH = re.compile(r"\$(?:\Z|[.\[]|[A-Za-z_]+[.\[])")
_ONE_WORD = re.compile(r"\$([A-Za-z]{4,9})(?=[.\[]|\Z)")
_NEARLY = 0.8
"""How alike a word is to a root that it misspells, by `difflib`; `$int` and `$put` are not that near to `$input`."""
_HOLDS_A_REFERENCE = re.compile(r"\$\{?(?:input|local|context)[.\[]")


def read_mappings(reader: AttributeReader, attributes: Attributes, name: str) -> Mappings | None:
    """The entries of a mapping list; None if the attribute is not there, () if it is an empty list."""
    if attributes.get(name, ListNode) is None:
        return None
    mappings: list[Mapping] = []
    targets: set[str] = set()
    for entry in reader.entries(attributes, name, MAPPING):
        target = reader.text(entry, "target")
        source = _source(reader, entry)
        if target is None or source is None:
            continue
        if target in targets:
            message = f"the target {shown(target)} is set twice; the last entry wins"
            reader.report.warning("duplicate-target", entry.head, message)
        targets.add(target)
        mappings.append(Mapping(target, source))
    return tuple(mappings)


def _source(reader: AttributeReader, entry: Attributes) -> Source | None:
    node = entry.any("source")
    if node is None:
        return None
    if isinstance(node, ScalarNode) and isinstance(node.value, str):  # only texts are references
        source = reader.compiled(node, compile_source, "bad-path")
    else:
        source = Constant(to_json(node))
    if isinstance(source, Constant) and not _has_misspelt_root(reader, node):
        _warn_if_it_holds_paths(reader, node)
    return source


def _has_misspelt_root(reader: AttributeReader, node: Node) -> bool:
    """Report a source such as `$inptu.a`. A longer word, such as `$inputs`, is a constant."""
    text = node.value if isinstance(node, ScalarNode) else None
    found = _ONE_WORD.match(text) if isinstance(text, str) else None
    if found is None or found[1].startswith(tuple(Root)):
        return False
    reader.work.spend(1)
    near = get_close_matches(found[1].lower(), list(Root), n=1, cutoff=_NEARLY)
    if near:
        message = f"{shown('$' + found[1])} is not a root: a reference begins with `$input`, `$local` or `$context`"
        reader.report.error("misspelt-root", node.span, message, Hint.DID_YOU_MEAN_ROOT.of(name=near[0]))
    return bool(near)


def _warn_if_it_holds_paths(reader: AttributeReader, node: Node) -> None:
    """Warn of texts in a constant source, at any depth, that its writer may have meant as references."""
    reader.work.spend(1)
    if isinstance(node, ScalarNode):
        warn_if_like_a_path(reader, node, Hint.WHOLE_SOURCE.of())
    elif isinstance(node, ListNode):
        for item in node.items:
            _warn_if_it_holds_paths(reader, item)
    else:
        for entry in node.entries:
            _warn_if_it_holds_paths(reader, entry.value)


def warn_if_like_a_path(reader: AttributeReader, node: Node, hint: str) -> None:
    """Warn of a constant text that its writer may have meant as a path."""
    if not isinstance(node, ScalarNode) or not isinstance(node.value, str) or not reader.is_first_look(node):
        return
    if _LIKE_A_PATH.match(node.value) or _HOLDS_A_REFERENCE.search(node.value):
        reader.report.warning("path-as-constant", node.span, "this text is a constant here, not a path", hint)
