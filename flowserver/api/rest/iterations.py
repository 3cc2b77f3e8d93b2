"""/v1/flows/{flow}/executions/{execution}/iterations: what became of each iteration of a foreach."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from flowserver.api.rest.answers import page_answer
from flowserver.api.rest.models.iterations import Iteration, IterationPage, IterationQuery
from flowserver.api.rest.models.steps import Iterations
from flowserver.api.rest.parameters import ExecutionName, FlowName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import ExecutionNotExists, FlowNotExists

router = rest_router("/flows/{flow}/executions/{execution}/iterations", "executions")


@router.get(
    "",
    summary="List iterations",
    response_model=IterationPage,
    responses=problems(FlowNotExists, ExecutionNotExists),
)
async def list_iterations(
    flow: FlowName, execution: ExecutionName, operations: Ops, query: Annotated[IterationQuery, Query()]
) -> Response:
    """The iterations of a foreach that have begun, by their index; all of them, or those with a status.

    `step` is the path of the foreach: `pack`, or `pack[3].inner` in an iteration of another. `nextToken` is an index,
    so a list can be read from any index on. With `at` they are as they were after that event. The first request for an
    execution reads its whole history; a request for an earlier event reads some thousand events again.
    """
    page = await operations.step_summaries.iterations(
        flow,
        execution,
        query.step,
        status=query.status,
        at=query.at,
        next_token=query.next_token,
        limit=query.limit,
    )
    counts = Iterations.of(page.counts).model_dump()
    return await page_answer(
        operations, page, "iterations", Iteration.of, counts=counts, lastEventId=page.last_event_id
    )
