"""Text to located nodes: checks that it is YAML (or JSON) of an allowed size.

Owns everything that is YAML's: characters, tags, aliases, duplicate keys, nesting. Knows nothing of flows.
Nodes are built from the parser's events on an explicit stack, so that depth, size and aliases are charged
before anything is built and nothing here is recursive.
"""

import re
from itertools import islice
from typing import Any, Final

import yaml

from flowserver.base.limits import Limits
from flowserver.language.check_cost import Work
from flowserver.language.composer import NodeBuilder
from flowserver.language.diagnostics import LINE_BREAK, CheckingStopped, Report
from flowserver.language.graph import Span
from flowserver.language.nodes import Node
from flowserver.language.syntax_hints import syntax_hint

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C parser is several times faster

_NOT_YAML = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]",
)
_SURROGATE_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_TAG_DIRECTIVE = re.compile("^%TAG", re.MULTILINE)

TAG_DIRECTIVES_MAX: Final = 100
"""`%TAG` lines of one text."""

_START = Span(1, 1, 1, 2)


def read_source(text: str, limits: Limits, report: Report, work: Work, ref_keys: frozenset[str]) -> Node:
    """The root of the one document in `text`; raises CheckingStopped if there is no usable one.

    Scalars tagged `!Ref` are accepted as values of the keys in `ref_keys`; every other tag is an error.
    """
    text = text.removeprefix("\ufeff")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.definition_bytes_max:
        message = f"a definition has at most {limits.definition_bytes_max} bytes, this one has {size}"
        report.error("definition-too-large", _START, message)
        raise CheckingStopped
    if found := _NOT_YAML.search(text):
        code = f"U+{ord(found[0]):04X}"
        report.error("bad-character", _span_at(text, found.start()), f"the character {code} is not allowed")
        raise CheckingStopped
    _check_directives(text, report)
    text = _without_json_pairs(text)
    builder = NodeBuilder(text, limits, report, work, ref_keys)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        _report_syntax(text, error, report, work)
        raise CheckingStopped from None
    if builder.root is None:
        report.error("no-definition", _START, "there is no definition in this text")
        raise CheckingStopped
    return builder.root


def _check_directives(text: str, report: Report) -> None:
    """Refuse many `%TAG` lines: libyaml compares each with all others, and no tag they name is allowed anyway."""
    lines = islice(_TAG_DIRECTIVE.finditer(text), TAG_DIRECTIVES_MAX, None)
    if (found := next(lines, None)) is not None:
        message = f"a definition has at most {TAG_DIRECTIVES_MAX} `%TAG` directives"
        report.error("tag-not-allowed", _span_at(text, found.start()), message)
        raise CheckingStopped


def _report_syntax(text: str, error: yaml.MarkedYAMLError, report: Report, work: Work) -> None:
    mark: Any = error.problem_mark
    offset = mark.index if mark.index < len(text) else len(text.rstrip())
    message = ", ".join(part for part in (error.problem, error.context) if part)
    hint = syntax_hint(text, offset, work, _LOADER)
    report.error("not-yaml", _span_at(text, offset), f"this is not YAML: {message}", hint)


def _span_at(text: str, offset: int) -> Span:
    """The place of one character, counted as YAML counts lines."""
    lines = LINE_BREAK.split(text[:offset])
    line, column = len(lines), len(lines[-1]) + 1
    return Span(line, column, line, column + 1)


def _without_json_pairs(text: str) -> str:
    """Join escaped surrogate pairs, which JSON writers emit for characters past U+FFFF and YAML does not know."""
    if not text.lstrip().startswith("{"):
        return text
    return _SURROGATE_PAIR.sub(_joined, text)


def _joined(found: re.Match[str]) -> str:
    high, low = int(found[2], 16), int(found[3], 16)
    return f"{found[1]}\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08x}"
