"""Requests over HTTP by what they call, counted by this process since its start."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

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
        self.elsewhere: Sequence[Sequence[Any]] = ()
        """The `rows` of another process of this node, as a scrape has found them."""

    def count(self, api: str, route: str, status: int | str, seconds: float) -> None:
        """A request is over."""
        counts = self._of((api, route))
        counts.statuses[status] = counts.statuses.get(status, 0) + 1
        counts.durations.add(seconds)

    def rows(self) -> list[list[Any]]:
        """All that was counted, for another process."""
        return [
            [*route, dict(counts.statuses), *counts.durations.numbers()] for route, counts in list(self._routes.items())
        ]

    def _of(self, route: Route) -> RouteCounts:
        counts = self._routes.get(route)
        if counts is None:
            counts = self._routes[route] = RouteCounts()
        return counts

    def _add(self, rows: Sequence[Sequence[Any]]) -> None:
        statuses: Mapping[int | str, int]
        for api, route, statuses, numbers, sum_seconds in rows:
            counts = self._of((api, route))
            for status, number in statuses.items():
                counts.statuses[status] = counts.statuses.get(status, 0) + number
            counts.durations.merge(numbers, sum_seconds)

    def collect(self) -> Iterator[Metric]:
        """The metrics of this moment, with those of requests elsewhere."""
        both = RequestMetrics()
        both._add(self.rows())
        both._add(self.elsewhere)
        requests = CounterMetricFamily("flowserver_http_requests", REQUESTS, labels=["api", "route", "status"])
        seconds = HistogramMetricFamily("flowserver_http_request_seconds", SECONDS, labels=["api", "route"])
        for route, counts in both._routes.items():
            seconds.add_metric(route, *counts.durations.buckets())
            for status, number in counts.statuses.items():
                requests.add_metric([*route, str(status)], number)
        yield from (requests, seconds)
