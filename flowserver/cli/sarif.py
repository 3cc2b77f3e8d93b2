"""Findings as SARIF 2.1.0, the format in which code hosts and editors read the results of static analysis."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

import flowserver
from flowserver.analysis.rules import RULES, Finding, PathStep
from flowserver.base.json_values import Json, JsonObject
from flowserver.editing.rule_pages import rule_page
from flowserver.language.diagnostics import DIAGNOSTICS
from flowserver.language.graph import Span

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_of(files: Iterable[tuple[str, Iterable[Finding]]]) -> JsonObject:
    """One run with the findings of each file; files are named by their paths as given."""
    given = [(name, list(found)) for name, found in files]
    ids = sorted({finding.id for _, found in given for finding in found})
    results: list[Json] = [_result(name, finding, ids.index(finding.id)) for name, found in given for finding in found]
    driver: JsonObject = {
        "name": "flowserver prove",
        "version": flowserver.__version__,
        "rules": [_rule(id) for id in ids],
    }
    artifacts: list[Json] = [{"location": {"uri": _uri(name)}} for name, _ in given]
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": artifacts,
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(id: str) -> JsonObject:
    rule = RULES.get(id)
    if rule is None:
        return {"id": id, "shortDescription": {"text": DIAGNOSTICS[id].removeprefix("Warning: ")}}
    return {
        "id": id,
        "shortDescription": {"text": rule.finds},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule_page(id).argument, "markdown": rule_page(id).markdown()},
        "defaultConfiguration": {"level": str(rule.severity)},
    }


def _result(name: str, finding: Finding, rule: int) -> JsonObject:
    message = finding.message if finding.hint is None else f"{finding.message} ({finding.hint})"
    result: JsonObject = {
        "ruleId": finding.id,
        "ruleIndex": rule,
        "level": str(finding.severity),
        "message": {"text": message},
        "locations": [_location(name, _region(finding.span))],
    }
    if finding.path:
        places: list[Json] = [{"location": _path_location(name, each)} for each in finding.path]
        result["codeFlows"] = [{"threadFlows": [{"locations": places}]}]
    return result


def _path_location(name: str, step: PathStep) -> JsonObject:
    region: JsonObject = {"startLine": step.line, "startColumn": step.column}
    return _location(name, region) | {"message": {"text": f"{step.name} {step.note}"}}


def _location(name: str, region: JsonObject) -> JsonObject:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(name)}, "region": region}}


def _region(span: Span) -> JsonObject:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _uri(name: str) -> str:
    """A relative path stays relative, so that the report holds on other machines."""
    path = PurePath(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
