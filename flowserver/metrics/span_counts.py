"""Spans that were not exported, counted by the tracer of this process."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

REASONS: Final = ("queue", "export", "history")

DROPPED: Final = (
    "Spans that this process did not export, by `reason`: `queue` (too many waited), `export` (the collector did not "
    "take them), `history` (the beginning of an attempt could not be read)."
)


class SpanMetrics(Collector):
    """Zeros while `tracing` is off."""

    def __init__(self) -> None:
        self.dropped: Callable[[], Mapping[str, int]] = dict
        self.elsewhere: Mapping[str, int] = {}
        """What another process of this node has dropped, as a scrape has found it."""

    def collect(self) -> Iterator[Metric]:
        """The metric of this moment."""
        spans = CounterMetricFamily("flowserver_dropped_spans", DROPPED, labels=["reason"])
        counts = self.dropped()
        for reason in REASONS:
            spans.add_metric([reason], counts.get(reason, 0) + self.elsewhere.get(reason, 0))
        yield spans
