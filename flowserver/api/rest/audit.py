"""/v1/audit: who did what."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from flowserver.api.rest.answers import page_answer
from flowserver.api.rest.models.audit import AuditPage, AuditQuery, AuditRecord
from flowserver.api.rest.parameters import instant_of
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.store.audit import AuditFilter

router = rest_router("/audit", "server")


@router.get("", summary="List the audit", response_model=AuditPage, responses=problems())
async def list_audit(operations: Ops, query: Annotated[AuditQuery, Query()]) -> Response:
    """What was done by whom, and what was refused, the newest first. A page may be short before the last one."""
    wanted = AuditFilter(
        key_id=query.key,
        operation=query.operation,
        object=query.object,
        result=query.result,
        begin_ms=instant_of("from", query.from_),
        end_ms=instant_of("to", query.to),
    )
    page = await operations.audit.list(wanted, next_token=query.next_token, limit=query.limit)
    return await page_answer(operations, page, "records", AuditRecord.of)
