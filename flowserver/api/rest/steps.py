"""/v1/flows/{flow}/executions/{execution}/steps: what became of each step."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from flowserver.api.rest.answers import page_answer
from flowserver.api.rest.models.shared_types import PageQuery
from flowserver.api.rest.models.steps import Step, StepPage
from flowserver.api.rest.parameters import ExecutionName, FlowName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import ExecutionNotExists, FlowNotExists

router = rest_router("/flows/{flow}/executions/{execution}/steps", "executions")


@router.get(
    "", summary="Summarize steps", response_model=StepPage, responses=problems(FlowNotExists, ExecutionNotExists)
)
async def list_steps(
    flow: FlowName, execution: ExecutionName, operations: Ops, query: Annotated[PageQuery, Query()]
) -> Response:
    """Per step path: status, attempts, first and last instant, and of a foreach its iterations.

    The reply has one item per step of the definition that was entered, however many iterations there are.
    """
    page = await operations.step_summaries.summarize(flow, execution, next_token=query.next_token, limit=query.limit)
    return await page_answer(operations, page, "steps", Step.of, lastEventId=page.last_event_id)
