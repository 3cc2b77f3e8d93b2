"""Limits of flow tests: of those that run without a server, and of those that a server runs."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit


@dataclass(frozen=True, kw_only=True)
class FlowTestLimits:
    """Rows of `Limits`."""

    flow_test_bytes_max: int = limit(
        1_048_576, unit="bytes", reason="size of one flow test file", error="a mistake in the file"
    )
    flow_tests_max: int = limit(
        1_000, unit="tests", reason="tests of one flow test file", error="a mistake in the file"
    )
    flow_test_events_max: int = limit(
        50_000,
        unit="events",
        reason="events of one test, those of its sub-flows included: an endless loop ends within seconds",
        error="the test fails",
    )
    flow_test_turns_max: int = limit(
        20_000,
        unit="turns",
        reason="turns of one test, those of its sub-flows included: answers, reports and timers",
        error="the test fails",
    )
    flow_tests_request_events_max: int = limit(
        50_000,
        unit="events",
        reason="events of all tests that one request runs on a server, in a thread in the background; one more is "
        "counted for each KiB of an event, and some for each test",
        error="the tests that remain fail; `flowserver test` runs them",
    )
    flow_tests_request_seconds_max: int = limit(
        5,
        unit="seconds",
        reason="time of the processor for all tests of one such request: large data is mapped in few events",
        error="the tests that remain fail; `flowserver test` runs them",
    )
    flow_tests_waiting_max: int = limit(
        16,
        unit="requests",
        reason="requests to run tests that wait on one node: it runs one after the other, each in a few seconds",
        error="429 ResourceThrottled",
    )
    simulation_runs_max: int = limit(
        1_000_000,
        unit="runs",
        reason="runs of one simulation: some minutes for a small flow",
        error="a mistake in the file, or of the option",
    )
