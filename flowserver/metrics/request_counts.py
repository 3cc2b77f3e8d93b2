"""Requests over HTTP by what they call, counted by this process since its start."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from flowserver.metrics.durations import Durations

UNANSWERED: Final = "unanswered"
"""The status of a request whose client went away before it was answered."""

REQUESTS: Final = (
    "Requests, by `api`, `route` (the action of RPC, or the name of the route) and `status`, which is `unanswered` "
    "if the client went away first."
)
SECONDS: Final = "Time from the head of a request to the end of its answer, by `api` and `route`, waits included."

Route = tuple[str, str]


class RouteCounts:
    """The requests of one route."""

    __slots__ = ("durations", "statuses")

    def __init__(self) -> None:
        self.statuses: dict[int | str, int] = {}
        self.durations = Durations()


class RequestMetrics(Collector):
    """The requests of all routes: names of the server's own, so their number is bounded."""

    def __init__(self) -> None:
        self._routes: dict[Route, RouteCounts] = {}

    def count(self, api: str, route: str, status: int | str, seconds: float) -> None:
        """A request is over."""
        counts = self._routes.get((api, route))
        if counts is None:
            counts = self._routes[api, route] = RouteCounts()
        counts.statuses[status] = counts.statuses.get(status, 0) + 1
        counts.durations.add(seconds)

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment."""
        requests = CounterMetricFamily("flowserver_http_requests", REQUESTS, labels=["api", "route", "status"])
        seconds = HistogramMetricFamily("flowserver_http_request_seconds", SECONDS, labels=["api", "route"])
        for route, counts in list(self._routes.items()):
            seconds.add_metric(route, *counts.durations.buckets())
            for status, number in list(counts.statuses.items()):
                requests.add_metric([*route, str(status)], number)
        yield from (requests, seconds)
