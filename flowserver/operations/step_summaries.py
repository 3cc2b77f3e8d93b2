"""Step summaries of executions. They are kept between requests, so that each reads only the events that are new."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from typing import TypeVar

from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import text_bytes
from flowserver.engine.engine import Engine
from flowserver.machine.foreach_iterations import Iteration
from flowserver.machine.step_summary import Iterations, StepStatus, StepSummary
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.operations.executions import require_id
from flowserver.operations.history_folds import HistoryFolds
from flowserver.operations.page_tokens import is_small_number
from flowserver.operations.pages import Page, check_limit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StepPage(Page[StepSummary]):
    """A page of step summaries in the order in which the steps were entered first."""

    last_event_id: int
    """They count all events up to this one."""
    last_ms: int | None
    """When it was recorded; None if no event can be read."""
    execution_status: str
    """What the execution was after it."""
    is_complete: bool
    """Whether they count all that was asked for."""


@dataclass(frozen=True, slots=True)
class IterationPage(Page[Iteration]):
    """A page of the iterations of a foreach that have begun, by their index."""

    counts: Iterations
    """Of all iterations."""
    last_event_id: int
    """They are as they were after this event."""


class StepSummaryOperations:
    """Operations on step summaries.

    The first request for an execution reads its whole history; those that follow, what is new. A request for an earlier
    event reads some thousand events again. All raise FlowNotExists, ExecutionNotExists, and InvalidArgument if the
    summary takes more than `step_paths_bytes_max`.
    """

    def __init__(self, engine: Engine, folds: HistoryFolds) -> None:
        self._engine = engine
        self._folds = folds

    async def summarize(
        self,
        flow_name: str,
        name: str,
        *,
        at: int | None = None,
        within: float | None = None,
        next_token: str | None,
        limit: int | None,
    ) -> StepPage:
        """The steps of an execution, as they are or were after the event `at`. The token is the position of a step.

        If its history is yet to be read, that ends after `within` seconds; the next request reads on from there.
        """
        size, begin = self._place(limit, next_token, "the position of a step")
        bytes_max = self._engine.limits.page_bytes_max

        def page(summaries: StepSummaries, is_complete: bool) -> StepPage:
            steps = summaries.steps()
            shown = _shown(islice(steps, begin, begin + size), bytes_max)
            end = begin + len(shown)
            following = str(end) if end < len(steps) else None
            status = summaries.execution_status
            return StepPage(shown, following, summaries.last_event_id, summaries.last_ms, status, is_complete)

        return await self._ask(flow_name, name, at, page, inf if within is None else within)

    async def iterations(
        self,
        flow_name: str,
        name: str,
        step: str,
        *,
        status: StepStatus | None = None,
        at: int | None = None,
        next_token: str | None,
        limit: int | None,
    ) -> IterationPage:
        """Iterations of a foreach that have begun, as they are or were after the event `at`. The token is an index.

        `step` is the path of the foreach step: `pack`, or `pack[3].inner` in an iteration of another. Of a step that
        was entered several times the last entry counts. The page is empty if it has begun no iterations.
        """
        size, begin = self._place(limit, next_token, "the index of an iteration")
        if "[]" in step:
            raise InvalidArgument(
                "`step` must have the numbers of the iterations that the foreach is in: pack[3].inner"
            )
        bytes_max = self._engine.limits.page_bytes_max

        def page(summaries: StepSummaries, _: bool) -> IterationPage:
            loop = None if summaries.loops is None else summaries.loops.get(step)
            if loop is None:
                return IterationPage([], None, Iterations(), summaries.last_event_id)
            found = loop.find(step, begin, status)
            shown = _within(bytes_max, islice(found, size))
            following = next(loop.find(step, shown[-1].index + 1, status), None) if shown else None
            token = None if following is None else str(following.index)
            return IterationPage(shown, token, loop.counts(), summaries.last_event_id)

        return await self._ask(flow_name, name, at, page)

    def _place(self, limit: int | None, next_token: str | None, meaning: str) -> tuple[int, int]:
        """How many items a page has, and the number of its first."""
        size = check_limit(limit, self._engine.limits.page_max)
        if next_token and not is_small_number(next_token):
            raise InvalidArgument(f"NextToken must be {meaning}")
        return size, int(next_token or 0)

    async def _ask(
        self,
        flow_name: str,
        name: str,
        at: int | None,
        show: Callable[[StepSummaries, bool], T],
        seconds: float = inf,
    ) -> T:
        execution_id = await self._engine.reader.ask(
            lambda connection: require_id(connection, flow_name, name), by_caller=True
        )
        return await self._folds.summaries_at(execution_id, at, show, seconds=seconds)


S = TypeVar("S", StepSummary, Iteration)


def _within(bytes_max: int, items: Iterable[S]) -> list[S]:
    """Items until their texts fill `bytes_max`, but at least one."""
    shown: list[S] = []
    for item in items:
        bytes_max -= item.shown_bytes if isinstance(item, StepSummary) else text_bytes(item.path)
        if shown and bytes_max < 0:
            break
        shown.append(item)
    return shown


def _shown(steps: Iterable[StepSummary], bytes_max: int) -> list[StepSummary]:
    """Copies of the steps, which the fold goes on changing."""
    return [
        replace(
            step,
            iterations=step.iterations and replace(step.iterations),
            options=dict(step.options),
            edges=dict(step.edges),
        )
        for step in _within(bytes_max, steps)
    ]
