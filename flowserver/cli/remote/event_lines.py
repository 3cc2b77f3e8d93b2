"""Events as lines."""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import typer
from msgspec.structs import replace

from flowserver.base.step_paths import is_path
from flowserver.cli.document_output import show_document
from flowserver.cli.printable import json_text
from flowserver.cli.remote.error_lines import cause_text
from flowserver.cli.remote.output import one_line
from flowserver.cli.remote.session import Session
from flowserver.cli.remote.step_states import FoldedEvent
from flowserver.cli.remote.times import shown_instant
from flowserver.client.results import Event
from flowserver.machine.event_paths import EventPaths, matches_path

DETAIL_CHARACTERS_MAX: Final = 100

_SHOWN: Final = ("redriveCount", "from", "definition", "error", "cause", "output", "input")
"""What of a detail is shown first, if it is there."""


def shown_event(event: Event, now: datetime) -> str:
    """One line: number, time, type, path of the step, and the beginning of what it says."""
    where = f"  {event.step_path or event.step_name}" if event.step_name else ""
    child = sub_execution_of(event)
    detail = _detail(event.detail) if child is None else f"  started {child}"
    return f"{event.event_id:>4}  {shown_instant(event.time, now)}  {event.type:<18}{where}{detail}"


def sub_execution_of(event: Event) -> str | None:
    """FLOW/NAME of the execution that a sub-flow's step has started with this event; None for another event."""
    output = event.detail.get("output") if event.type == "TaskSubmitted" else None
    if not isinstance(output, dict) or not (output.get("FlowName") and output.get("Name")):
        return None
    return f"{output['FlowName']}/{output['Name']}"


def show_events(session: Session, events: Iterable[Event]) -> int:
    """Print events, line by line as they come, or as one list for programs; returns how many they were."""
    if session.output in ("json", "yaml"):
        documents = [each.document for each in events]
        show_document(session.output, documents)
        return len(documents)
    shown, now = 0, datetime.now(UTC)
    for event in events:
        typer.echo(event.event_id if session.output == "name" else shown_event(event, now))
        shown += 1
    return shown


def event_line(event: Event) -> str:
    """The event as one line of JSON."""
    return json_text(event.document)


def with_paths(events: Iterator[Event]) -> Iterator[Event]:
    """The events of an execution, in order from the first, each with the path of its step."""
    paths = EventPaths()
    for event in events:
        path = paths.add(FoldedEvent.of(event))
        yield replace(event, step_path=path, document={**event.document, "stepPath": path})


def is_of(event: Event, step: str | None, types: Sequence[str]) -> bool:
    """Whether an event with its path is of this step, by name or path, and of one of these types; any if empty."""
    if types and event.type not in types:
        return False
    if step is None or not is_path(step):
        return step in (None, event.step_name)
    return matches_path(event.step_path or "", step)


def _detail(detail: dict[str, Any]) -> str:
    shown = [f"{name}={_value(name, detail[name])}" for name in _SHOWN if detail.get(name)]
    return f"  {one_line(' '.join(shown), DETAIL_CHARACTERS_MAX)}" if shown else ""


def _value(name: str, value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return cause_text(value) if name == "cause" else value
