"""/v1/flows/{flow}/executions/{execution}/steps: what became of each step."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from flowserver.api.rest.answers import page_answer
from flowserver.api.rest.models.steps import Step, StepPage, SummaryQuery
from flowserver.api.rest.parameters import ExecutionName, FlowName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.clock import format_instant
from flowserver.base.errors import ExecutionNotExists, FlowNotExists

router = rest_router("/flows/{flow}/executions/{execution}/steps", "executions")


@router.get(
    "", summary="Summarize steps", response_model=StepPage, responses=problems(FlowNotExists, ExecutionNotExists)
)
async def list_steps(
    flow: FlowName, execution: ExecutionName, operations: Ops, query: Annotated[SummaryQuery, Query()]
) -> Response:
    """Per step path: status, attempts, first and last instant, and of a foreach its iterations.

    The reply has one item per step of the definition that was entered, however many iterations there are. With `at` it
    is the summary as it was after that event, and `status` what the execution was then. The first request for an
    execution reads its whole history; a request for an earlier event reads some thousand events again. With `within` a
    long history is read for so long at most. The answer then counts the events that were read, up to `lastEventId`;
    `complete` is false, and a further request goes on from there.
    """
    page = await operations.step_summaries.summarize(
        flow, execution, at=query.at, within=query.within, next_token=query.next_token, limit=query.limit
    )
    last_time = None if page.last_ms is None else format_instant(page.last_ms)
    more = {
        "status": page.execution_status,
        "lastEventId": page.last_event_id,
        "lastEventTime": last_time,
        "complete": page.is_complete,
    }
    return await page_answer(operations, page, "steps", Step.of, **more)
