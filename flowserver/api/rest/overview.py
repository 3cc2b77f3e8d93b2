"""/v1/overview: the whole server at a glance."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer
from flowserver.api.rest.models.overview import OverviewQuery, ServerOverview
from flowserver.api.rest.parameters import instant_of
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router

router = rest_router("/overview", "server")


@router.get("", summary="Show an overview", response_model=ServerOverview, responses=problems())
async def get_overview(operations: Ops, query: Annotated[OverviewQuery, Query()]) -> Response:
    """What runs, what failed, what waits, and what a person should look at, in all flows.

    It is read once for all callers and some seconds, and costs no more in larger tables: so numbers end at a bound, and
    `atLeast` says so.
    """
    shown = await operations.overview.show(instant_of("failedSince", query.failed_since))
    return answer(ServerOverview.of(shown))
