"""Step summaries of executions. They are kept between requests, so that each reads only the events that are new."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from sqlalchemy import Connection

from flowserver.base.errors import InvalidArgument
from flowserver.base.json_values import text_bytes
from flowserver.engine.engine import Engine
from flowserver.machine.step_summary import StepSummary
from flowserver.machine.step_summary_fold import StepSummaries
from flowserver.operations.executions import require_id
from flowserver.operations.fold_cache import KeptFolds, read_on
from flowserver.operations.page_tokens import is_small_number
from flowserver.operations.pages import Page, check_limit


@dataclass(frozen=True, slots=True)
class StepPage(Page[StepSummary]):
    """A page of step summaries in the order in which the steps were entered first."""

    last_event_id: int
    """They count all events up to this one."""


class StepSummaryOperations:
    """Operations on step summaries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: KeptFolds[StepSummaries] = KeptFolds(StepSummaries, engine.limits)

    async def summarize(self, flow_name: str, name: str, *, next_token: str | None, limit: int | None) -> StepPage:
        """The steps of an execution. The token is the position of the step that the page starts with.

        The first request reads the whole history; those that follow, what is new. Raises FlowNotExists,
        ExecutionNotExists, InvalidArgument.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        if next_token and not is_small_number(next_token):
            raise InvalidArgument("NextToken must be the position of a step")
        begin = int(next_token or 0)
        execution_id = await self._engine.reader.ask(
            lambda connection: require_id(connection, flow_name, name), by_caller=True
        )

        def read(connection: Connection, summaries: StepSummaries) -> StepPage:
            read_on(connection, execution_id, summaries, limits)
            steps = summaries.steps()
            shown = _shown(islice(steps, begin, begin + size), limits.page_bytes_max)
            end = begin + len(shown)
            return StepPage(shown, str(end) if end < len(steps) else None, summaries.last_event_id)

        async with self._kept.use(execution_id) as summaries:
            return await self._engine.slow_reads.ask(partial(read, summaries=summaries))


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
