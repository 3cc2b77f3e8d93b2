"""What folds over histories read of events, whether these are the machine's own or were read over REST."""

from typing import Protocol

from flowserver.base.json_values import JsonObject, load_stored_json


class HistoryEvent(Protocol):
    """What the fold reads of an event."""

    @property
    def event_id(self) -> int:
        """From 1."""

    @property
    def schedule_event_id(self) -> int:
        """The event that caused it."""

    @property
    def type(self) -> str:
        """One of `EventType`."""

    @property
    def step_name(self) -> str:
        """ "" for events of the execution itself."""

    @property
    def time_ms(self) -> int:
        """Its instant."""

    @property
    def detail(self) -> str | JsonObject:
        """Its detail, or the JSON text of it."""


def detail_of(event: HistoryEvent) -> JsonObject:
    """The detail as an object; {} if it is none."""
    detail = event.detail if isinstance(event.detail, dict) else load_stored_json(event.detail)
    return detail if isinstance(detail, dict) else {}


def text_in(value: object) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def number_in(value: object, default: int) -> int:
    """The value if it is a whole number, or the default."""
    return value if isinstance(value, int) else default
