"""How full queues are, as metrics."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

MESSAGES: Final = "Messages of queues, by `queue` and `state`: `ready`, or `hidden` (received, or delayed)."
OLDEST: Final = "How long the oldest message of a queue has been there, by `queue`; 0 without a message."


class ShownQueue(NamedTuple):
    """One queue at the moment of a scrape."""

    name: str
    ready: int
    hidden: int
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
            messages.add_metric([queue.name, "ready"], queue.ready)
            messages.add_metric([queue.name, "hidden"], queue.hidden)
            oldest.add_metric([queue.name], queue.oldest_seconds)
        yield from (messages, oldest)
