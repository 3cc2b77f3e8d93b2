"""The input of an execution that a schedule starts."""

from flowserver.base.json_values import json_bytes
from flowserver.machine.schedules.start_input import input_bytes_max, input_of_start


def test_the_bound_is_that_of_the_longest_name() -> None:
    payload = {"k": "é" * 10}
    given = input_of_start(payload, 1_767_225_600_000, "s" * 128)
    assert given == {"payload": payload, "triggerTime": "2026-01-01T00:00:00.000Z", "triggerName": "s" * 128}
    assert json_bytes(given) == input_bytes_max(payload)
