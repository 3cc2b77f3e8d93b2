"""Step summaries of executions. They are kept between requests, so that each reads only the events that are new."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import text_bytes
from flowserver.engine.engine import Engine
from flowserver.machine.step_summary import StepSummary
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.operations.executions import require_id
from flowserver.operations.fold_cache import KeptFolds
from flowserver.operations.page_tokens import is_small_number
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.rewinding import Rewindable, read_at


@dataclass(frozen=True, slots=True)
class StepPage(Page[StepSummary]):
    """A page of step summaries in the order in which the steps were entered first."""

    last_event_id: int
    """They count all events up to this one."""
    last_ms: int | None
    """When it was recorded; None if no event can be read."""
    execution_status: str
    """What the execution was after it."""


class StepSummaryOperations:
    """Operations on step summaries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        make = partial(Rewindable, StepSummaries, engine.limits.step_snapshots_bytes_max)
        self._kept: KeptFolds[Rewindable[StepSummaries]] = KeptFolds(make, engine.limits)

    async def summarize(
        self, flow_name: str, name: str, *, at: int | None = None, next_token: str | None, limit: int | None
    ) -> StepPage:
        """The steps of an execution, or as they were after the event `at`. The token is the position of a step.

        The first request reads the whole history; those that follow, what is new. For an earlier event some thousand
        events are read again. Raises FlowNotExists, ExecutionNotExists, InvalidArgument.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        if next_token and not is_small_number(next_token):
            raise InvalidArgument("NextToken must be the position of a step")
        begin = int(next_token or 0)
        execution_id = await self._engine.reader.ask(
            lambda connection: require_id(connection, flow_name, name), by_caller=True
        )

        def page(summaries: StepSummaries) -> StepPage:
            steps = summaries.steps()
            shown = _shown(islice(steps, begin, begin + size), limits.page_bytes_max)
            end = begin + len(shown)
            following = str(end) if end < len(steps) else None
            return StepPage(shown, following, summaries.last_event_id, summaries.last_ms, summaries.execution_status)

        return await read_at(self._kept, self._engine, execution_id, at, page)


def _shown(steps: Iterable[StepSummary], bytes_max: int) -> list[StepSummary]:
    """Copies of the steps until they fill `bytes_max`, but at least one."""
    shown: list[StepSummary] = []
    for step in steps:
        bytes_max -= text_bytes(step.path)
        if shown and bytes_max < 0:
            break
        iterations = None if step.iterations is None else replace(step.iterations)
        shown.append(replace(step, iterations=iterations))
    return shown
