"""Task tokens: which tasks wait for a report, and the reports."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from flowserver.base.errors import FlowNotExists, InvalidArgument, TaskAlreadyCompleted, TaskInvalidState
from flowserver.base.json_parameters import parse_input
from flowserver.base.task_tokens import TokenClaim
from flowserver.engine.commit.batch_items import Envelope, ReceiptKind
from flowserver.engine.engine import Engine
from flowserver.machine.messages import Failure, Result, Success, TaskReported
from flowserver.operations.audit import AuditLog
from flowserver.operations.callers import EVERYTHING, Caller, Flows, Need
from flowserver.operations.executions import require_id
from flowserver.operations.page_tokens import scope_key_of, scope_token_of
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.span_links import link_to_attempt
from flowserver.operations.text_rules import check_cause, check_error
from flowserver.store.executions.lookups import flow_name_of
from flowserver.store.executions.waiting_tasks import WaitingTask, list_waiting_tasks
from flowserver.store.flows import find_flow

REPORTING: Final = Need("tasks.report", Flows.OWN)
"""What a report needs of its caller."""


@dataclass(frozen=True, slots=True)
class ShownTask:
    """A task that waits, with the token that settles it."""

    task: WaitingTask
    token: str


class TaskOperations:
    """ReportTaskSucceeded and ReportTaskFailed, and the list of tasks that wait for one of them."""

    def __init__(self, engine: Engine, audit: AuditLog) -> None:
        self._engine = engine
        self._audit = audit

    async def list_waiting(
        self,
        flow: str | None,
        *,
        execution: str | None = None,
        flow_prefix: str | None = None,
        older_than_seconds: int,
        next_token: str | None,
        limit: int | None,
    ) -> Page[ShownTask]:
        """Tasks that have waited for so long at least, the oldest executions first; of one flow, or one execution of
        it, of flows whose names begin so, or of all.

        A page may be short, or even empty, and have a next one. Raises InvalidArgument, FlowNotExists and
        ExecutionNotExists.
        """
        if execution is not None and flow is None:
            raise InvalidArgument("the name of an execution needs that of its flow")
        engine = self._engine
        size = check_limit(limit, engine.limits.page_max)
        after = scope_key_of(next_token)
        if flow is not None and await engine.reader.ask(partial(find_flow, name=flow)) is None:
            raise FlowNotExists(f"flow {flow} does not exist")
        execution_id = None
        if flow is not None and execution is not None:
            execution_id = await engine.reader.ask(partial(require_id, flow_name=flow, name=execution))
        before = engine.clock.now_ms() - 1000 * older_than_seconds if older_than_seconds else None
        page = await engine.slow_reads.ask(
            lambda c: list_waiting_tasks(
                c, flow, before, after, size, execution_id=execution_id, flow_prefix=flow_prefix
            )
        )
        shown = [ShownTask(each, engine.tokens.make(*each.key, each.entered_event_id, None)) for each in page.tasks]
        return Page(shown, None if page.last is None else scope_token_of(page.last))

    async def report_succeeded(
        self, token: str, output_text: str, *, request_id: str = "", caller: Caller = EVERYTHING
    ) -> int:
        """Settle a task with its output (JSON text of an object); returns the id of the event that records it, and the
        id of the request.

        Raises InvalidArgument (output, also if the step cannot hold it with its input, while the task waits on; or
        a token this server did not make; it names the cell that did),
        TaskAlreadyCompleted (the token's task has ended in any way), TaskInvalidState (between two attempts, or while
        the execution is parked; try again later), AccessDenied (the task is of a flow that the caller may not use).
        """
        if output_text == "":
            raise InvalidArgument("Output must be the JSON text of an object")
        output = parse_input(output_text, self._engine.limits, "Output")
        return await self._report(token, Success(output), request_id, caller)

    async def report_failed(
        self, token: str, error: str, cause: str | None = None, *, request_id: str = "", caller: Caller = EVERYTHING
    ) -> int:
        """Fail a task under an error name that retry and catch can match; returns and raises as `report_succeeded`."""
        check_error(error, self._engine.limits)
        check_cause(cause, self._engine.limits)
        return await self._report(token, Failure(error, cause or ""), request_id, caller)

    async def check_reporter(self, token: str, caller: Caller) -> None:
        """Raises AccessDenied if the caller may not report on the token's task; who starts an execution with the token
        does report on it, with the execution's end.
        """
        caller.require(REPORTING)
        claim = self._engine.tokens.read(token)
        if claim is not None:
            await self._check_flow(claim, caller)

    async def _check_flow(self, claim: TokenClaim, caller: Caller) -> None:
        if caller.flows:
            find = partial(flow_name_of, execution_id=claim.execution_id)
            caller.require_flow(await self._engine.reader.ask(find, by_caller=True) or "")

    async def _report(self, token: str, result: Result, request_id: str, caller: Caller) -> int:
        claim = self._engine.tokens.read(token)
        if claim is None or claim.wait_id is not None:
            raise InvalidArgument(f"TaskToken {self._engine.tokens.why_unknown(token)}")
        await self._check_flow(claim, caller)
        named = f"executions/{claim.execution_id}"
        return await self._audit.recorded(
            "tasks.report", named, partial(self._submit_report, claim, result, request_id)
        )

    async def _submit_report(self, claim: TokenClaim, result: Result, request_id: str) -> int:
        message = TaskReported(
            claim.scope_id, claim.entered_event_id, claim.wait_id, result, request_id, refuse_too_large=True
        )
        receipt = await self._engine.committer.submit(Envelope(claim.execution_id, message), by_caller=True)
        match receipt.kind:
            case ReceiptKind.APPLIED:
                await link_to_attempt(self._engine, claim.execution_id, receipt.event_id)
                return receipt.event_id
            case ReceiptKind.REFUSED:
                raise InvalidArgument(f"Output is too large for the step, which waits on: {receipt.reason}")
            case ReceiptKind.NOT_NOW:
                raise TaskInvalidState("the task waits to be tried again and takes no report now; try again shortly")
            case ReceiptKind.PARKED:
                raise TaskInvalidState("the task's execution is parked and takes no report now; try again later")
            case _:
                raise TaskAlreadyCompleted
