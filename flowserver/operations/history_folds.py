"""What one node keeps of the histories that it has read, so that each event is read and folded once for all requests.

The step summary and the paths of events come from the same fold: who looks at an execution wants both.
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TypeVar

from sqlalchemy import Connection

from flowserver.base.limits import Limits
from flowserver.engine.engine import Engine
from flowserver.machine.event_paths import EventPaths
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.operations.fold_cache import KeptFolds, read_on
from flowserver.operations.rewinding import RewindableSummaries

T = TypeVar("T")


class HistoryFold(EventPaths):
    """The paths of the events, and the step summaries after any of them."""

    def __init__(self, limits: Limits) -> None:
        make = partial(StepSummaries, with_iterations=True)
        self.summaries = RewindableSummaries(make, limits.step_snapshots_bytes_max)
        super().__init__(self.summaries)


class HistoryFolds:
    """The folds of a node, by execution id. Use it in the event loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: KeptFolds[HistoryFold] = KeptFolds(partial(HistoryFold, engine.limits), engine.limits)
        self.use = self._kept.use
        """See `KeptFolds.use`."""
        self.following = self._kept.following
        """See `KeptFolds.following`."""

    def folds(self) -> list[HistoryFold]:
        """Those that are kept."""
        return self._kept.folds()

    async def summaries_at(
        self, execution_id: str, at: int | None, show: Callable[[StepSummaries, bool], T], *, seconds: float = inf
    ) -> T:
        """What `show` makes of the summaries after the event `at`, or of the newest, in a thread of slow reads.

        What is yet to be read is read for `seconds` at most; `show` gets whether that was enough. A
        request for an earlier event keeps no other one waiting, once the fold has read so far.
        """
        limits = self._engine.limits

        def read(connection: Connection, fold: HistoryFold) -> T:
            is_complete = read_on(connection, execution_id, fold, limits, at, seconds)
            return show(fold.summaries.newest, is_complete)

        def read_again(connection: Connection, make: Callable[[], StepSummaries], up_to: int) -> T:
            summaries = make()
            read_on(connection, execution_id, summaries, limits, up_to)
            return show(summaries, True)

        async with self.use(execution_id) as fold:
            if at is None or at >= fold.last_event_id:
                return await self._engine.slow_reads.ask(partial(read, fold=fold))
            make = fold.summaries.before(at)
        return await self._engine.slow_reads.ask(partial(read_again, make=make, up_to=at))
