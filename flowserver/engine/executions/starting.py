"""Starts executions, for the API, sub-flow steps and schedules, by the same rules."""

import asyncio
import math
from functools import partial
from typing import Final

import msgspec

from flowserver.base.errors import (
    ExecutionAlreadyExists,
    FlowNotExists,
    InternalServerError,
    ResourceThrottled,
)
from flowserver.base.json_parameters import parse_input
from flowserver.base.names import is_name
from flowserver.concurrency.futures import shared
from flowserver.concurrency.threads import Threads
from flowserver.engine.commit.batch_items import Envelope, Receipt, ReceiptKind
from flowserver.engine.context import EngineContext
from flowserver.language.graph import ChildLifecycle
from flowserver.machine.messages import Start
from flowserver.machine.state import Status
from flowserver.machine.versions.routing import is_qualifier, no_version
from flowserver.store.executions.lookups import count_running, find_statuses
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.shown_executions import ExecutionRow
from flowserver.store.flows import FlowRow

COUNT_SECONDS = 5.0
"""How long a count of running executions is used; counting a million rows for each start would be too slow."""

FULL_COUNT_SECONDS = 1.0
"""The same before a start is refused: other nodes may have ended executions that were started here."""


SHARES_OF_STEPS: Final = 2
"""How many times `running_executions_max` may run when a step starts one: those of callers, and as many sub-flows."""


class TurnTaken(Exception):
    """The schedule has changed since its turn was decided on: another node took the turn, or a user changed it."""


class OwnerGone(Exception):
    """The step that would own the execution no longer waits for it."""


class SubFlowTooDeep(Exception):
    """The execution whose step makes the start has too many ancestors."""


class Started(msgspec.Struct, frozen=True):
    """The execution that runs under the name."""

    flow: FlowRow
    execution_id: str
    execution: ExecutionRow | None
    """The new execution after its first turn; None if it has to be read."""
    is_new: bool
    """Whether this start, or an earlier try of it, made the execution."""


class Starter:
    """Checks a start against the rules and commits it."""

    def __init__(self, context: EngineContext, child_lifecycle: ChildLifecycle = "owned") -> None:
        self.child_lifecycle = child_lifecycle
        self._database = context.database
        self._committer = context.committer
        self._reader = context.reader
        self._limits = context.limits
        self._disk = context.disk
        self._thread = Threads("starts")
        self._running = 0
        self._counted_at = -math.inf
        self._counting: asyncio.Task[None] | None = None

    def close(self) -> None:
        """End the thread that counts. Do not start executions afterwards."""
        self._thread.close()

    def note_change(self, *, is_new: bool, is_running: bool) -> None:
        """Note that this node has committed a change of an execution that is new or was running."""
        self._running += is_new - (not is_running)

    async def require_room(self) -> None:
        """Raises ResourceThrottled if as many executions run as may."""
        running_max = self._limits.running_executions_max
        if not await self._has_room(running_max):
            raise _full(running_max)

    async def start(self, request: NewExecution, *, by_step: bool = False) -> Started:
        """Start an execution, or find the running execution of that name. Parses the input.

        A step's start is refused neither because many messages wait for the writer or the disk is almost full, nor when
        it is repeated, nor because callers have started as many executions as may run: steps may start as many again
        (SHARES_OF_STEPS). A schedule's start is not refused because many messages wait.

        Raises InvalidArgument (input), FlowNotExists, FlowVersionNotExists, FlowAliasNotExists,
        ExecutionAlreadyExists (an ended execution has the name), ResourceThrottled (too many executions run, or too
        many messages wait for the writer), DiskAlmostFull, TurnTaken, OwnerGone, SubFlowTooDeep.
        """
        if not by_step:
            self._disk.require()
        if not is_name(request.flow_name):  # a flow may have computed it, and PostgreSQL cannot look for NUL
            raise FlowNotExists(f"flow {request.flow_name} does not exist")
        if request.qualifier is not None and not is_qualifier(request.qualifier):
            raise no_version(request.flow_name, request.qualifier)
        given = parse_input(request.input_text, self._limits)
        running_max = self._limits.running_executions_max * (SHARES_OF_STEPS if by_step else 1)
        if not (await self._has_room(running_max) or (by_step and await self._exists(request.execution_id))):
            raise _full(running_max)
        request = msgspec.structs.replace(request, input=given)
        receipt = await self._committer.submit(
            Envelope(request.execution_id, Start(), new=request), by_caller=not by_step and request.turn is None
        )
        return self._started(request, receipt)

    def _started(self, request: NewExecution, receipt: Receipt) -> Started:
        if receipt.kind is ReceiptKind.NO_FLOW:
            raise FlowNotExists(f"flow {request.flow_name} does not exist")
        if receipt.kind is ReceiptKind.NO_VERSION:
            raise no_version(request.flow_name, str(request.qualifier))
        if request.turn is not None and receipt.kind is ReceiptKind.STALE:
            raise TurnTaken
        if request.parent is not None and receipt.kind is ReceiptKind.STALE:
            raise OwnerGone
        if receipt.kind is ReceiptKind.TOO_DEEP:
            depth_max = self._limits.sub_flow_depth_max
            raise SubFlowTooDeep(f"it would have more than {depth_max} ancestors, the limit sub_flow_depth_max")
        if receipt.flow is not None and receipt.kind is ReceiptKind.APPLIED:
            return Started(receipt.flow, request.execution_id, receipt.started, is_new=True)
        if receipt.flow is None or receipt.existing is None:
            raise InternalServerError("the execution could not be started; the server's log says why")
        execution_id, status = receipt.existing
        if execution_id == request.execution_id:
            return Started(receipt.flow, execution_id, None, is_new=True)
        if status is not Status.RUNNING:
            name = f"execution {request.name} of flow {request.flow_name}"
            raise ExecutionAlreadyExists(f"{name} has already ended")
        return Started(receipt.flow, execution_id, None, is_new=False)

    async def _has_room(self, running_max: int) -> bool:
        """Count before the first start and before a refusal; otherwise starts do not wait for a count.

        Between two counts this node adds its own starts and ends.
        """
        age = asyncio.get_running_loop().time() - self._counted_at
        is_full = self._running >= running_max
        if self._counting is None and age > (FULL_COUNT_SECONDS if is_full else COUNT_SECONDS):
            self._counting = shared(self._count())
        if self._counting is not None and (is_full or self._counted_at == -math.inf):
            await asyncio.shield(self._counting)
        return self._running < running_max

    async def _exists(self, execution_id: str) -> bool:
        """Whether this start was committed before."""
        return bool(await self._reader.ask(partial(find_statuses, execution_ids=[execution_id])))

    async def _count(self) -> None:
        try:
            self._running = await self._thread.run(partial(self._database.run_read, count_running))
            self._counted_at = asyncio.get_running_loop().time()
        finally:
            self._counting = None


def _full(running_max: int) -> ResourceThrottled:
    return ResourceThrottled(f"{running_max} executions are running; try again later")
