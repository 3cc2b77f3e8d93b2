"""The calls of functions as metrics."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from flowserver.invokers.function_health import FunctionHealth

CALLS: Final = "Calls of functions that this process made, by `function` and `result`: `ok`, or the name of the error."
SECONDS: Final = "Time that calls of functions took, by `function`."
RETRIES: Final = "Those of them that were not the first attempt of their step or invocation, by `function`."
IN_FLIGHT: Final = "Calls of functions that this process is making, by `function`."

SUCCEEDED: Final = "ok"


class FunctionMetrics(Collector):
    """Of the first functions that this process called, and of the others together."""

    def __init__(self, health: FunctionHealth) -> None:
        self._health = health

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment."""
        calls = CounterMetricFamily("flowserver_function_calls", CALLS, labels=["function", "result"])
        retries = CounterMetricFamily("flowserver_function_retries", RETRIES, labels=["function"])
        seconds = HistogramMetricFamily("flowserver_function_call_seconds", SECONDS, labels=["function"])
        in_flight = GaugeMetricFamily("flowserver_function_calls_in_flight", IN_FLIGHT, labels=["function"])
        for (service, function), counts in self._health.totals():
            name = f"{service}/{function}" if service else function
            for error, number in list(counts.results.items()):
                calls.add_metric([name, error or SUCCEEDED], number)
            retries.add_metric([name], counts.retries)
            seconds.add_metric([name], *counts.durations.buckets())
            in_flight.add_metric([name], counts.in_flight)
        yield from (calls, retries, seconds, in_flight)
