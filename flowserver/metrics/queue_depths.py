"""How full queues are, as metrics."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

MESSAGES: Final = (
    "Messages of queues, by `queue` and `state`: `visible` (the first 10,000 are counted), `inflight` (received), or "
    "`delayed` (of these two together the first 1,000)."
)
OLDEST: Final = "How long the oldest message of a queue has been there, by `queue`; 0 without a message."


class ShownQueue(NamedTuple):
    """One queue at the moment of a scrape."""

    name: str
    visible: int
    inflight: int
    delayed: int
    oldest_seconds: float


class QueueMetrics(Collector):
    """Has no state of its own: each scrape sets what it has read."""

    def __init__(self) -> None:
        self.shown: Sequence[ShownQueue] = ()

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment."""
        messages = GaugeMetricFamily("flowserver_queue_messages", MESSAGES, labels=["queue", "state"])
        oldest = GaugeMetricFamily("flowserver_queue_oldest_message_seconds", OLDEST, labels=["queue"])
        for queue in self.shown:
            messages.add_metric([queue.name, "visible"], queue.visible)
            messages.add_metric([queue.name, "inflight"], queue.inflight)
            messages.add_metric([queue.name, "delayed"], queue.delayed)
            oldest.add_metric([queue.name], queue.oldest_seconds)
        yield from (messages, oldest)
