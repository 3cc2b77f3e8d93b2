"""Redrives: executions that ended without success go on where they failed; one, or all that a filter finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from flowserver.base.errors import (
    ExecutionNotExists,
    ExecutionNotRedrivable,
    FlowServerError,
    InvalidArgument,
    ResourceThrottled,
)
from flowserver.engine.commit.batch_items import Envelope, Receipt, ReceiptKind
from flowserver.engine.engine import Engine
from flowserver.machine.mappings import Environment
from flowserver.machine.state import Status
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.callers import Sees, sees_all
from flowserver.operations.executions import require_execution
from flowserver.operations.flows import require_flow
from flowserver.operations.page_tokens import cursor_of, token_of
from flowserver.operations.pages import check_limit
from flowserver.operations.planned_children import PlannedChildren
from flowserver.operations.redrive_plans import RedrivePlan, RedriveWish, plan_redrive
from flowserver.store.executions.listing_of_flow import ExecutionFilter, Listed, PageCursor, list_executions
from flowserver.store.executions.lookups import find_id
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.integrity.disk_reserve import DiskAlmostFull

TRIES: Final = 3
"""How often a redrive is planned anew because the execution has changed meanwhile."""


class ExecutionEndReported(ExecutionNotRedrivable):
    """The execution that waited for this one has taken its end, so only that one can be redriven."""

    code = "ExecutionEndReported"

    def __init__(self, message: str | None = None, redrive_instead: str | None = None) -> None:
        super().__init__(message)
        self.redrive_instead = redrive_instead
        """FLOW/NAME of that one, if it can be redriven as far as its status says."""


@dataclass(frozen=True, slots=True)
class RefusedRedrive:
    """An execution that a bulk redrive left as it was."""

    name: str
    reason: str
    code: str
    """That of the error with which a redrive of this execution alone is refused."""
    redrive_instead: str | None = None
    """FLOW/NAME of the execution to redrive instead, if there is one."""


@dataclass(frozen=True, slots=True)
class BulkRedrive:
    """A page of a bulk redrive: the names of what was redriven, what was not, and the token of the next page."""

    redriven: Sequence[str]
    refused: Sequence[RefusedRedrive]
    next_token: str | None
    repeated: Sequence[str] = ()
    """Those that a request with the same client token had redriven, and that match again. They are left as they are."""


@dataclass(slots=True)
class _Read:
    """What the plans of one request have read."""

    bytes: int = 0


class RedriveOperations:
    """Operations that redrive executions."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    async def plan(self, flow_name: str, name: str, wish: RedriveWish, *, sees: Sees = sees_all) -> RedrivePlan:
        """What a redrive would do, without doing it; raises FlowNotExists, ExecutionNotExists."""
        return await self._plan(flow_name, name, wish, sees, is_dry=True)

    @audited("executions.redrive", "flows/{flow_name}/executions/{name}")
    async def redrive(self, flow_name: str, name: str, wish: RedriveWish, *, sees: Sees = sees_all) -> ExecutionRow:
        """Let an execution go on where it failed or was aborted, and return it.

        With the client token of its last redrive nothing changes, and the execution is returned as it is. Raises
        FlowNotExists, ExecutionNotExists, ExecutionNotRedrivable (ExecutionEndReported if the execution it reports to
        has taken its end), ResourceThrottled; DiskAlmostFull, unless it runs and waits for the redrive.
        """
        await self._redrive(flow_name, name, wish, _Read(), sees)
        return await self._engine.reader.ask(partial(require_execution, flow_name=flow_name, name=name))

    @audited("executions.redrive-many", "flows/{flow_name}/executions")
    async def redrive_many(
        self,
        flow_name: str,
        wish: RedriveWish,
        wanted: ExecutionFilter,
        *,
        error: str | None = None,
        next_token: str | None = None,
        limit: int | None = None,
        sees: Sees = sees_all,
    ) -> BulkRedrive:
        """Redrive a page of the executions that a filter finds, one after the other; `error` is that which they have.

        The page ends early, after one execution at least, once `bulk_redrive_bytes_max` bytes were read for it. With
        a client token in the wish the request may be repeated: it redrives no execution whose last redrive had it.
        Raises FlowNotExists, InvalidArgument; ResourceThrottled or DiskAlmostFull if not one more execution may run.
        """
        if wanted.status in (Status.RUNNING, Status.SUCCEEDED) and not wanted.waiting_for_redrive:
            raise InvalidArgument(f"executions with the status {wanted.status} cannot be redriven")
        size = check_limit(limit, self._engine.limits.executions_page_max)
        begin = None if next_token is None else cursor_of(next_token)
        page = await self._engine.slow_reads.ask(
            partial(self._page, flow_name=flow_name, wanted=wanted, begin=begin, size=size)
        )
        redriven: list[str] = []
        repeated: list[str] = []
        refused: list[RefusedRedrive] = []
        read, most = _Read(), self._engine.limits.bulk_redrive_bytes_max
        for row in page.rows:
            is_redriven = row.waiting_steps if row.status is Status.RUNNING else row.status is not Status.SUCCEEDED
            if not is_redriven or (error is not None and row.error != error):
                continue
            if read.bytes >= most:
                return BulkRedrive(redriven, refused, token_of(PageCursor(row.name, row.started_at)), repeated)
            try:
                is_new = await self._redrive(flow_name, row.name, wish, read, sees)
                (redriven if is_new else repeated).append(row.name)
            except (ResourceThrottled, DiskAlmostFull):
                if not redriven:
                    raise
                return BulkRedrive(redriven, refused, token_of(PageCursor(row.name, row.started_at)), repeated)
            except FlowServerError as problem:
                instead = problem.redrive_instead if isinstance(problem, ExecutionEndReported) else None
                refused.append(RefusedRedrive(row.name, problem.message, problem.code, instead))
        return BulkRedrive(redriven, refused, None if page.following is None else token_of(page.following), repeated)

    async def _redrive(self, flow_name: str, name: str, wish: RedriveWish, read: "_Read", sees: Sees) -> bool:
        """Whether it is redriven now; False if its last redrive had the client token."""
        for _ in range(TRIES):
            plan = await self._plan(flow_name, name, wish, sees)
            read.bytes += plan.read_bytes
            if plan.is_repeated:
                return False
            if await self._submit(flow_name, name, plan):
                return True
        raise ResourceThrottled(f"execution {name} of flow {flow_name} keeps changing; try again shortly")

    async def _plan(
        self, flow_name: str, name: str, wish: RedriveWish, sees: Sees, *, is_dry: bool = False
    ) -> RedrivePlan:
        def read(connection: Connection) -> RedrivePlan:
            flow = require_flow(connection, flow_name)
            execution_id = find_id(connection, flow.flow_id, name)
            limits, tokens = self._engine.limits, self._engine.tokens
            children = self._children(connection) if is_dry else None
            plan = execution_id and plan_redrive(
                connection, execution_id, flow, wish, limits, tokens, counts_kept=is_dry, children=children, sees=sees
            )
            if not plan:
                raise ExecutionNotExists(f"execution {name} of flow {flow_name} does not exist")
            return plan

        return await self._engine.slow_reads.ask(read)

    def _children(self, connection: Connection) -> PlannedChildren:
        engine = self._engine
        now = Environment(engine.clock.now_ms(), engine.limits, engine.missing_source, engine.tokens.make)
        return PlannedChildren(connection, now, is_owned=engine.starter.child_lifecycle == "owned")

    async def _submit(self, flow_name: str, name: str, plan: RedrivePlan) -> bool:
        """Make the planned redrive; False if the execution has changed since."""
        if plan.is_end_reported:
            raise ExecutionEndReported(_refused(flow_name, name, "; ".join(plan.reasons)), plan.redrive_instead)
        if plan.reasons:
            raise _refusal(flow_name, name, "; ".join(plan.reasons))
        if not plan.is_running:
            self._engine.disk.require()
            await self._engine.starter.require_room()
        envelope = Envelope(plan.execution_id, plan.message, redrive=plan.request)
        receipt: Receipt = await self._engine.committer.submit(envelope, by_caller=True)
        match receipt.kind:
            case ReceiptKind.APPLIED | ReceiptKind.REPEATED:
                return True
            case ReceiptKind.NOT_NOW:
                return False
            case ReceiptKind.RUNNING:
                raise _refusal(flow_name, name, "it is running")
            case _:
                raise _refusal(flow_name, name, receipt.reason or "its state cannot be used; the server's log says why")

    def _page(
        self, connection: Connection, *, flow_name: str, wanted: ExecutionFilter, begin: PageCursor | None, size: int
    ) -> Listed:
        return list_executions(
            connection,
            require_flow(connection, flow_name).flow_id,
            wanted,
            begin=begin,
            limit=size,
            bytes_max=self._engine.limits.page_bytes_max,
            documents=False,
        )


def _refusal(flow_name: str, name: str, reason: str) -> ExecutionNotRedrivable:
    return ExecutionNotRedrivable(_refused(flow_name, name, reason))


def _refused(flow_name: str, name: str, reason: str) -> str:
    return f"execution {name} of flow {flow_name} cannot be redriven: {reason}"
