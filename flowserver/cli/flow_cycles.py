"""Flows of several files that start one another without an end."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from flowserver.analysis.sub_flow_cycles import Starts, starting_itself, starts_of
from flowserver.base.limits import Limits
from flowserver.language.diagnostics import DefinitionRejected
from flowserver.language.graph import Flow
from flowserver.language.parser import STORED_LIMITS, parse

_STDIN: Final = "-"


def flows_together(texts: Mapping[str, str], limits: Limits, *, lenient: bool) -> tuple[dict[str, str], Starts]:
    """The flows of some files: their names by file, as in their texts or else as the files', and what they start.

    Of files that are not valid, or whose flows have one name, none is known.
    """
    flows = _parsed(texts, limits, lenient=lenient)
    names = {file: flow.name or Path(file).stem for file, flow in flows.items() if flow.name or file != _STDIN}
    times = Counter(names.values())
    names = {file: name for file, name in names.items() if times[name] == 1}
    return names, starts_of({name: flows[file] for file, name in names.items()})


def cycles_in(texts: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """By the names of some flows the findings in those that start themselves, as a server says them."""
    flows = _parsed(texts, STORED_LIMITS, lenient=True)
    starts = starts_of(flows)
    found = {name: starting_itself(name, flow, starts) for name, flow in flows.items()}
    return {
        name: {
            "id": each.id,
            "severity": str(each.severity),
            "message": each.message,
            "hint": each.hint,
            "line": each.span.line,
            "column": each.span.column,
            "target": None,
        }
        for name, each in found.items()
        if each is not None
    }


def _parsed(texts: Mapping[str, str], limits: Limits, *, lenient: bool) -> dict[str, Flow]:
    """The flows that are valid."""
    flows: dict[str, Flow] = {}
    for name, text in texts.items():
        with suppress(DefinitionRejected):
            flows[name] = parse(text, limits, allow_ref_tags=True, lenient=lenient).flow
    return flows
