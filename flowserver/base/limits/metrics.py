"""Limits of metrics: how many values a label may have, each of which Prometheus keeps as some series."""

from dataclasses import dataclass

from flowserver.base.limits.limit import limit

OTHERS = "none: the others are counted together, under the label `(other)`"


@dataclass(frozen=True, kw_only=True)
class MetricLimits:
    """Rows of `Limits`."""

    metric_flows_max: int = limit(
        100,
        unit="flows",
        reason="flows that the metrics of a process count one by one, the first that it runs: some 25 series each, "
        "more with its steps and errors",
        error=OTHERS,
    )
    metric_functions_max: int = limit(
        100,
        unit="functions",
        reason="functions that the metrics of a process count one by one, the first that it calls: some 25 series each",
        error=OTHERS,
    )
    metric_names_max: int = limit(
        20,
        unit="names",
        reason="steps of one flow, its errors, those of all its steps together, and results of one function, that the "
        "metrics of a process count one by one: functions choose the names of errors freely",
        error=OTHERS,
    )
    metric_queues_max: int = limit(
        50,
        unit="queues",
        reason="queues that the metrics show, the deepest: each takes some reads of the database",
        error="none: the metrics do not show the others",
    )
