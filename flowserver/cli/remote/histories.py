"""Events as lines."""

import json
from datetime import datetime
from typing import Any, Final

from flowserver.cli.remote.output import one_line
from flowserver.cli.remote.times import shown_instant
from flowserver.client.results import Event

DETAIL_CHARACTERS_MAX: Final = 100

_SHOWN: Final = ("error", "cause", "output", "input")
"""What of a detail is shown first, if it is there."""


def shown_event(event: Event, now: datetime) -> str:
    """One line: number, time, type, step, and the beginning of what it says."""
    where = f"  {event.step_name}" if event.step_name else ""
    return f"{event.event_id:>4}  {shown_instant(event.time, now)}  {event.type:<18}{where}{_detail(event.detail)}"


def event_line(event: Event) -> str:
    """The event as one line of JSON."""
    return json.dumps(event.document, ensure_ascii=False)


def _detail(detail: dict[str, Any]) -> str:
    shown = [f"{name}={_value(detail[name])}" for name in _SHOWN if detail.get(name)]
    return f"  {one_line(' '.join(shown), DETAIL_CHARACTERS_MAX)}" if shown else ""


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
