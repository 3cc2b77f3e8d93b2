"""The input of an execution that a schedule starts."""

from typing import Final

from flowserver.base.clock import format_instant
from flowserver.base.json_values import JsonObject, json_bytes

NAME_CHARACTERS_MAX: Final = 128


def input_of_start(payload: JsonObject, at_ms: int, schedule_name: str) -> JsonObject:
    """The schedule's payload with the instant that it starts for, in ms, and its name."""
    return {"payload": payload, "triggerTime": format_instant(at_ms), "triggerName": schedule_name}


def input_bytes_max(payload: JsonObject) -> int:
    """The most bytes that an input with this payload takes: with the longest name of a schedule."""
    return json_bytes(input_of_start(payload, 0, "n" * NAME_CHARACTERS_MAX))
