"""What the tests of the JSON Schemas share: texts as data, and one object of every kind with every attribute."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flowserver.base.limits import Limits
from flowserver.language.check_cost import Work
from flowserver.language.diagnostics import CheckingStopped, DefinitionRejected, Report
from flowserver.language.fields import FLOW, HOLDS, OBJECTS, STEP, STEPS, ObjectKind
from flowserver.language.nodes import to_json
from flowserver.language.parser import REF_KEYS, parse
from flowserver.language.source import read_source

NO_DATA = object()
"""What a text holds that is no YAML."""


def data_of(text: str) -> Any:
    """The values of a YAML text, as an editor reads them; NO_DATA if there are none."""
    try:
        return to_json(read_source(text, Limits(), Report(), Work(), REF_KEYS))
    except CheckingStopped:
        return NO_DATA


def errors_of(text: str, limits: Limits) -> list[str]:
    """The ids of the errors that the parser finds."""
    try:
        parse(text, limits, allow_ref_tags=True)
    except DefinitionRejected as rejected:
        return [found.id for found in rejected.diagnostics if found.severity == "error"]
    return []


@dataclass(frozen=True)
class Place:
    """An object within data: the keys that lead to it, and its kind."""

    keys: tuple[str | int, ...]
    kind: ObjectKind

    def of(self, data: Any) -> dict[str, Any]:
        """The object."""
        for key in self.keys:
            data = data[key]
        assert isinstance(data, dict)
        return data


def objects_of(data: Any) -> Iterator[Place]:
    """Every object of a definition."""
    yield from _objects((), data, FLOW)


def _objects(keys: tuple[str | int, ...], data: Any, kind: ObjectKind) -> Iterator[Place]:
    yield Place(keys, kind)
    for name, value in data.items():
        held = HOLDS.get(name)
        if held is None:
            continue
        entries: Mapping[Any, Any] = dict(enumerate(value)) if isinstance(value, list) else {None: value}
        for position, entry in entries.items():
            inner = (*keys, name) if position is None else (*keys, name, position)
            yield from _objects(inner, entry, STEPS[entry["type"]] if held == STEP else OBJECTS[held])


_MAPPINGS = [{"target": "a", "source": "$input.a"}, {"target": "b", "source": {"deep": [1, None]}}]
_EVERY = {"end": False, "inputMappings": _MAPPINGS, "outputMappings": _MAPPINGS}
_CALLED = {
    "timeoutSeconds": 60,
    "retry": [
        {"errors": ["E"], "intervalSeconds": 0, "maxIntervalSeconds": 9, "maxAttempts": 2, "multiplier": 1.5},
    ],
    "catch": [{"errors": ["FnF.ALL", "F"], "goto": "stop"}],
    "errorMappings": [{"target": "why", "source": "$local.error"}],
}


def _task(name: str, **attributes: Any) -> dict[str, Any]:
    return {"type": "task", "name": name, **attributes}


FULL: dict[str, Any] = {
    "version": "v1",
    "type": "flow",
    "name": "ignored",
    "timeoutSeconds": 3600,
    "inputMappings": _MAPPINGS,
    "outputMappings": _MAPPINGS,
    "steps": [
        {"type": "pass", "name": "begin", **_EVERY},
        _task(
            "function",
            resourceArn="acs:fc:cn-hangzhou:123:services/s.q/functions/f",
            pattern="sync",
            serviceParams={"InvocationType": "Async", "StatefulAsyncInvocationID": "$.id"},
            **_EVERY,
            **_CALLED,
        ),
        _task("alone", resourceArn="acs:fc:::functions/f/q", serviceParams={"InvocationType": "$.how"}),
        _task(
            "child",
            resourceArn="acs:fnf:::flow/child",
            pattern="sync",
            serviceParams={"Input": "$", "Qualifier": 3},
            childLifecycle="independent",
        ),
        _task(
            "queue",
            resourceArn="acs:mns:::/queues/jobs/messages",
            pattern="waitForCallback",
            serviceParams={"MessageBody": "$", "Priority": 8, "DelaySeconds": None},
            inputMappings=[{"target": "token", "source": "$context.task.token"}],
        ),
        _task("topic", resourceArn="acs:mns:::/topics/news/messages", serviceParams={"MessageBody": {"a": "$.a"}}),
        _task("start", action="fnf:StartExecution", serviceParams={"FlowName": "child"}),
        _task("read", action="ocr:Read", serviceParams={"Any": ["$"]}, pattern="requestResponse"),
        {"type": "wait", "name": "seconds", "duration": 5, **_EVERY},
        {"type": "wait", "name": "path", "duration": "$.seconds"},
        {"type": "wait", "name": "instant", "timestamp": "2030-01-01T00:00:00+08:00"},
        {"type": "wait", "name": "then", "timestamp": "$.then"},
        {
            "type": "choice",
            "name": "choose",
            **_EVERY,
            "choices": [
                {"condition": "$.a > 1", "steps": [{"type": "pass", "name": "inner"}], "goto": "stop"},
                {"condition": True, "steps": []},
            ],
            "default": {"steps": [{"type": "pass", "name": "other"}], "goto": "begin"},
        },
        {"type": "choice", "name": "nothing", "default": {}},
        {"type": "parallel", "name": "both", **_EVERY, "branches": [{"steps": [{"type": "pass", "name": "left"}]}]},
        {
            "type": "foreach",
            "name": "each",
            **_EVERY,
            "iterationMapping": {"collection": "$.list", "item": "it", "index": "i"},
            "steps": [{"type": "succeed", "name": "done", "inputMappings": [], "outputMappings": []}],
        },
        {"type": "fail", "name": "stop", "error": "E", "cause": "", "inputMappings": [], "outputMappings": []},
    ],
}
"""A definition with every attribute of every kind, and every form of a target."""
