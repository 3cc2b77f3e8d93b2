"""The record of the audit that a request makes."""

from flowserver.base.request_context import RequestContext
from flowserver.store.audit import OBJECT_CHARACTERS_MAX, AuditRecord, record_id_at
from flowserver.store.sql.unreadable import storable


def record_of(request: RequestContext, now_ms: int, *, operation: str, named: str, result: str = "") -> AuditRecord:
    """A new record of this request; `named` is the path of the object, which the caller may have made up."""
    return AuditRecord(
        record_id=record_id_at(now_ms),
        at=now_ms,
        key_id=request.key_id,
        label=request.key_label,
        api=request.api,
        remote=request.remote,
        request_id=request.request_id,
        operation=operation,
        object=storable(named[:OBJECT_CHARACTERS_MAX]),
        result=result,
    )
