"""The reference figures: the best measured peer, the goal, and the limit of a check.

The peers ran the same workloads on another shared machine like this one, so compare ratios, not numbers; `machine`
prints the speed of both.
"""

from dataclasses import dataclass

from tests.benchmarks.attacks import ATTACKS, SLOW, SLOW_P99_MS


@dataclass(frozen=True)
class Yardstick:
    """One figure of one row, and its references."""

    row: str
    figure: str
    title: str
    peer: float | None = None
    """The best peer's figure."""
    goal: float | None = None
    allowed: float | None = None
    """The worst acceptable figure, where no peer is the reference."""
    more_is_better: bool = False

    def is_missed(self, value: float) -> bool:
        """Whether the figure is worse than what is acceptable."""
        if self.allowed is None:
            return False
        return value < self.allowed if self.more_is_better else value > self.allowed

    @property
    def varies_with_speed(self) -> bool:
        """Whether it is a time or a rate, which depends on the machine's speed."""
        return self.figure.endswith(("_ms", "_seconds", "per_second", "_ms_each"))

    def times_better(self, value: float) -> float | None:
        """How many times as good as the best peer's."""
        if self.peer is None or not value:
            return None
        return value / self.peer if self.more_is_better else self.peer / value


YARDSTICKS = (
    Yardstick("W1", "per_second", "executions/s", peer=236, goal=1_200, more_is_better=True),
    Yardstick("W1", "p50_ms", "p50, ms", peer=265),
    Yardstick("W1", "cpu_ms_each", "engine CPU, ms each", peer=6.1, goal=1),
    Yardstick("W2", "per_second", "executions/s", peer=272, goal=3_000, more_is_better=True),
    Yardstick("W2", "p50_ms", "p50, ms", peer=224),
    Yardstick("W2", "cpu_ms_each", "engine CPU, ms each", peer=6.5),
    Yardstick("W3", "p50_ms", "the whole, ms", peer=1_140),
    Yardstick("W3", "per_second", "calls/s", peer=877, goal=5_000, more_is_better=True),
    Yardstick("W4 suspended", "per_second", "suspended/s", peer=842, more_is_better=True),
    Yardstick("W4 completed", "per_second", "completed/s", peer=1_009, goal=4_000, more_is_better=True),
    Yardstick("W4 completed", "p50_ms", "report to finish p50, ms", peer=30, goal=8),
    Yardstick("W4 completed", "p99_ms", "report to finish p99, ms", peer=67, goal=20),
    Yardstick("W5", "memory_grown_mib", "memory grown, MiB", peer=86, goal=5),
    Yardstick("W5", "idle_cpu_percent", "idle CPU, % of a core", peer=1.3, goal=1),
    Yardstick("W5", "restart_to_completed_seconds", "restart to completed, s", peer=0.7, goal=1),
    Yardstick("alone", "p50_ms", "p50, ms", peer=9.8, goal=4),
    Yardstick("alone", "p99_ms", "p99, ms", peer=13.8, goal=7),
    Yardstick("command line", "p50_ms", "start --wait of one step, whole process, p50, ms", goal=250),
    Yardstick("command line", "process_cpu_ms_each", "processor time of that process, ms"),
    Yardstick("streams live", "cpu_us_per_event_and_stream", "engine CPU an event and stream, µs", goal=15),
    Yardstick("streams of the past", "cpu_us_per_event_and_stream", "engine CPU an event and stream, µs", goal=15),
    Yardstick("foreach", "seconds_ratio", "time for ten times the items, times", allowed=12),
    Yardstick("foreach", "cpu_ms_ratio", "engine CPU for ten times the items, times", allowed=12),
    Yardstick("foreach", "written_kib_ratio", "written for ten times the items, times", allowed=12),
    *(
        Yardstick(f"growth {kind}", "cpu_ms_ratio", "engine CPU for ten times the items, times", allowed=12)
        for kind in ("passes", "objects", "tasks", "callbacks")
    ),
    Yardstick("loop", "cpu_ms_ratio", "engine CPU of a late turn to an early one, times", allowed=1.2),
    Yardstick("loop", "written_kib_ratio", "written by a late turn to an early one, times", allowed=1.2),
    Yardstick("timers", "not_fired", "timers that did not fire", allowed=0),
    Yardstick("schedules", "not_started", "schedules that did not start", allowed=0),
    Yardstick("schedules", "late_p99_ms", "1,000 due at once: start after the tick p99, ms", goal=1_000),
    *(
        Yardstick(f"executions-list {kind}", "p99_ms", "GET /v1/executions, 1,000,000 rows, p99, ms", goal=50)
        for kind in ("newest", "any page", "failed", "failed by the end", "running", "a minute", "one flow")
    ),
    Yardstick("executions-list a prefix of none", "p99_ms", "GET /v1/executions, 5,000 rows checked, p99, ms", goal=50),
    Yardstick(
        "executions-list failed of one flow by the end",
        "p99_ms",
        "GET /v1/executions, 5,000 rows checked, p99, ms",
        goal=50,
    ),
    Yardstick("executions-list an alias of none", "p99_ms", "GET /v1/executions, 5,000 rows checked, p99, ms", goal=50),
    Yardstick("waiting", "memory_grown_mib", "memory grown, MiB", allowed=50),
    Yardstick("waiting", "idle_cpu_percent", "idle CPU, % of a core", allowed=1),
    Yardstick("waiting", "restart_to_first_answer_seconds", "restart to first answer, s", allowed=2),
    Yardstick("waiting", "completed_ms", "one of them completed, ms", allowed=10),
    Yardstick("intake", "lost", "acknowledged starts that were lost", allowed=0),
    Yardstick("intake", "no_answer", "starts whose connection broke", allowed=0),
    Yardstick("intake", "other_answers", "answers that were neither 200 nor 429", allowed=0),
    Yardstick("flood", "lost", "acknowledged starts that were lost", allowed=0),
    Yardstick("flood", "no_answer", "starts whose connection broke", allowed=0),
    Yardstick("flood", "other_answers", "answers that were neither 200 nor 429", allowed=0),
    *(
        stick
        for name in ATTACKS
        for stick in (
            Yardstick(f"neighbour of {name}", "healthz_p99_ms", "/healthz p99, ms", allowed=50),
            Yardstick(f"neighbour of {name}", "flow_p99_times", "flow's p99, times its own alone", allowed=3),
            Yardstick(f"neighbour of {name}", "flow_failed", "executions that failed", allowed=0),
        )
    ),
    *(
        Yardstick(f"neighbour of {name}", "flow_p99_ms", "another client's executions, p99, ms", allowed=SLOW_P99_MS)
        for name in SLOW
    ),
)
