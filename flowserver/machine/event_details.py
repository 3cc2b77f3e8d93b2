"""What folds over histories read of events, whether these are the machine's own or were read over REST."""

from typing import Protocol

import msgspec

from flowserver.base.json_values import InvalidJson, Json, JsonObject

_NAMES = {"caught_by": "caughtBy", "catch_rule": "catchRule", "waiting_steps": "waitingSteps"}


class Facts(msgspec.Struct, frozen=True, rename=_NAMES):
    """What folds read of a detail. To decode its text as this makes no objects of the rest, which are documents."""

    error: Json = None
    index: Json = None
    total: Json = None
    resumes: Json = None
    catch_rule: Json = None
    option: Json | msgspec.UnsetType = msgspec.UNSET
    cancelled: Json | msgspec.UnsetType = msgspec.UNSET
    redriven: Json | msgspec.UnsetType = msgspec.UNSET
    caught_by: Json | msgspec.UnsetType = msgspec.UNSET
    waiting_steps: Json | msgspec.UnsetType = msgspec.UNSET


NO_FACTS = Facts()


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
    def detail(self) -> str | JsonObject | Facts:
        """Its detail, the JSON text of it, or what is read of it."""


def facts_of(event: HistoryEvent) -> Facts:
    """What is read of the detail; nothing if it is no object. Raises InvalidJson for a damaged text."""
    detail = event.detail
    if isinstance(detail, Facts):
        return detail
    try:
        return msgspec.convert(detail, Facts) if isinstance(detail, dict) else _DECODER.decode(detail)
    except msgspec.ValidationError:
        return NO_FACTS
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidJson(str(error)) from None


def is_in(fact: object) -> bool:
    """Whether the detail has this member, be it null."""
    return fact is not msgspec.UNSET


_DECODER = msgspec.json.Decoder(Facts)


def text_in(value: object) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def number_in(value: object, default: int) -> int:
    """The value if it is a whole number, or the default."""
    return value if isinstance(value, int) else default
