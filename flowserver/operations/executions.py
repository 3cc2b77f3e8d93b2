"""Starting, stopping, reading and awaiting executions, and their histories."""

import asyncio
import json
from collections.abc import Sequence
from typing import TypeVar

import uuid_utils
from msgspec.structs import replace
from sqlalchemy import Connection

from flowserver.base.errors import (
    ExecutionAlreadyCompleted,
    ExecutionInputDiffers,
    ExecutionNotExists,
    ExecutionNotParked,
    InternalServerError,
    InvalidArgument,
)
from flowserver.base.json_values import load_json_object
from flowserver.base.names import check_execution_name
from flowserver.engine.commit.batch_items import Envelope, ReceiptKind
from flowserver.engine.engine import Engine
from flowserver.engine.executions.watchers import Watch
from flowserver.machine.events import Event
from flowserver.machine.messages import Stop
from flowserver.machine.state import Status
from flowserver.machine.versions.routing import LATEST
from flowserver.operations.audit import AuditLog, audited
from flowserver.operations.flows import require_flow
from flowserver.operations.held_requests import HeldRequests
from flowserver.operations.page_tokens import all_cursor_of, all_token_of, cursor_of, event_id_of, token_of
from flowserver.operations.pages import Page, check_limit
from flowserver.operations.span_links import link_to_start
from flowserver.operations.text_rules import check_cause, check_error
from flowserver.store.executions.history import list_events_page
from flowserver.store.executions.listing_of_all_flows import UNSUCCESSFUL_STATUSES, AllListed, list_all_executions
from flowserver.store.executions.listing_of_flow import ExecutionFilter, Listed, list_executions
from flowserver.store.executions.lookups import find_id_by_names
from flowserver.store.executions.new_executions import NewExecution
from flowserver.store.executions.shown_executions import ExecutionRow, find_execution
from flowserver.store.executions.sub_flows import independent_sub_flows
from flowserver.store.integrity.violations import unpark_execution

RUNNING_SUB_FLOWS_MAX = 100
"""Sub-flows that run on, as the reply of a stop names them."""

LOOK_AGAIN_SECONDS = 5.0
"""How often a waiter looks for itself, should another node's notice not be heard."""

T = TypeVar("T")


class ExecutionOperations:
    """Operations on executions."""

    def __init__(self, engine: Engine, audit: AuditLog, held: HeldRequests) -> None:
        self._engine = engine
        self._held = held
        self._audit = audit

    async def start(
        self,
        flow_name: str,
        *,
        name: str | None = None,
        input_text: str = "",
        callback_token: str | None = None,
        qualifier: str | None = None,
    ) -> ExecutionRow:
        """Start an execution, or return the running execution of that name.

        The qualifier is a version, or an alias, which draws one; without one, or with LATEST, the execution runs the
        definition that the flow has. Raises FlowNotExists, FlowVersionNotExists, FlowAliasNotExists,
        ExecutionAlreadyExists, InvalidArgument, ResourceThrottled, DiskAlmostFull.
        """
        row, _ = await self.start_or_find(
            flow_name, name=name, input_text=input_text, callback_token=callback_token, qualifier=qualifier
        )
        return row

    @audited("executions.start", "flows/{flow_name}/executions/{name}")
    async def start_or_find(
        self,
        flow_name: str,
        *,
        name: str | None = None,
        input_text: str = "",
        callback_token: str | None = None,
        qualifier: str | None = None,
        must_be_same: bool = False,
    ) -> tuple[ExecutionRow, bool]:
        """As `start`; also returns whether the execution is new.

        If it `must_be_same`, raises ExecutionInputDiffers for an execution that runs under the name with another input
        or another qualifier.
        """
        if name is not None:
            check_execution_name(name)
        if callback_token is not None and self._engine.tokens.read(callback_token) is None:
            raise InvalidArgument(f"CallbackFnFTaskToken {self._engine.tokens.why_unknown(callback_token)}")
        request = NewExecution(
            flow_name=flow_name,
            execution_id=str(uuid_utils.uuid7()),
            name=str(uuid_utils.uuid4()) if name is None else name,
            input_text=input_text,
            callback_token=callback_token,
            name_is_unique=name is None,
            qualifier=qualifier,
        )
        link_to_start(self._engine, request.execution_id)
        started = await self._engine.starter.start(request)
        if started.execution is not None:
            return started.execution, True
        row = await self._find(flow_name, request.name)
        if must_be_same and not started.is_new:
            _require_same(row, input_text, qualifier)
        return row, started.is_new

    @audited("executions.start", "flows/{flow_name}/executions/{name}")
    async def start_sync(
        self, flow_name: str, *, name: str | None = None, input_text: str = "", qualifier: str | None = None
    ) -> ExecutionRow:
        """Start an execution under a name that is always new and wait for its end.

        The name is `{name}:{uuid}`, as the API documents. Past `sync_wait_seconds_max`, or when the server stops, the
        running execution is returned. If the caller goes away the execution carries on.
        """
        if name is not None:
            check_execution_name(name)
        request = NewExecution(
            flow_name=flow_name,
            execution_id=str(uuid_utils.uuid7()),
            name=str(uuid_utils.uuid4()) if name is None else f"{name}:{uuid_utils.uuid4()}",
            input_text=input_text,
            name_is_unique=True,
            qualifier=qualifier,
        )
        link_to_start(self._engine, request.execution_id)
        with self._engine.watchers.watch_end(request.execution_id) as watch:
            started = await self._engine.starter.start(request)
            row = started.execution or await self._find(flow_name, request.name)
            return await self._await_watch(watch, row, self._engine.limits.sync_wait_seconds_max)

    @audited("executions.stop", "flows/{flow_name}/executions/{name}")
    async def stop(
        self, flow_name: str, name: str, *, error: str | None = None, cause: str | None = None
    ) -> ExecutionRow:
        """Stop a running execution; raises FlowNotExists, ExecutionNotExists, ExecutionAlreadyCompleted."""
        check_error(error, self._engine.limits)
        check_cause(cause, self._engine.limits)
        row = await self._find(flow_name, name, by_caller=True)
        receipt = await self._engine.committer.submit(Envelope(row.execution_id, Stop(error, cause)), by_caller=True)
        if receipt.kind is ReceiptKind.ENDED:
            raise ExecutionAlreadyCompleted(f"execution {name} of flow {flow_name} has already ended")
        if receipt.kind is not ReceiptKind.APPLIED:
            raise InternalServerError(f"execution {name} of flow {flow_name} is set aside; the server's log says why")
        return await self._find(flow_name, name)

    async def independent_sub_flows(self, row: ExecutionRow, flow_prefix: str) -> list[str]:
        """FLOW/NAME of running sub-flows that the end of this execution does not stop: RUNNING_SUB_FLOWS_MAX at most.

        Only flows whose names begin with the prefix are named.
        """
        found = await self._engine.reader.ask(
            lambda connection: independent_sub_flows(connection, row.execution_id, RUNNING_SUB_FLOWS_MAX)
        )
        return [f"{flow}/{name}" for flow, name in found if flow.startswith(flow_prefix)]

    @audited("executions.restart", "flows/{flow_name}/executions/{name}")
    async def unpark(self, flow_name: str, name: str) -> ExecutionRow:
        """Continue a parked execution, and return it. It is parked again if the cause still exists.

        Raises FlowNotExists, ExecutionNotExists, ExecutionAlreadyCompleted, ExecutionNotParked.
        """
        row = await self._find(flow_name, name, by_caller=True)

        def change(connection: Connection, was_parked: bool | None) -> bool:
            return unpark_execution(connection, row.execution_id) or bool(was_parked)

        if not await self._engine.committer.write_once(change, by_caller=True):
            if (await self._find(flow_name, name)).status is not Status.RUNNING:
                raise ExecutionAlreadyCompleted(f"execution {name} of flow {flow_name} has already ended")
            raise ExecutionNotParked(f"execution {name} of flow {flow_name} is not parked")
        await self._engine.execution_unparked(row.execution_id)
        return await self._find(flow_name, name)

    async def describe(
        self, flow_name: str, name: str, *, wait_seconds: int = 0, documents: bool = True
    ) -> ExecutionRow:
        """The execution, as soon as it has ended, `wait_seconds` have passed or the server stops.

        Without `documents` its input, output and definition are not read: only an end that comes meanwhile brings the
        output. Raises FlowNotExists, ExecutionNotExists.
        """
        seconds_max = self._engine.limits.describe_wait_seconds_max
        if not 0 <= wait_seconds <= seconds_max:
            raise InvalidArgument(f"WaitTimeSeconds must be between 0 and {seconds_max}")
        return await self._await_end(flow_name, name, wait_seconds, documents)

    async def list(
        self,
        flow_name: str,
        wanted: ExecutionFilter,
        *,
        next_token: str | None,
        limit: int | None,
        documents: bool = True,
    ) -> Page[ExecutionRow]:
        """Executions of a flow, newest first; without `documents` their input, output and definition are left empty.

        The token is the name the next page starts with, and its start. A page may be short before the last one.
        """
        limits = self._engine.limits
        size = check_limit(limit, limits.executions_page_max)
        begin = None if next_token is None else cursor_of(next_token)

        def read(connection: Connection) -> Listed:
            flow = require_flow(connection, flow_name)
            page = list_executions(
                connection,
                flow.flow_id,
                wanted,
                begin=begin,
                limit=size,
                bytes_max=limits.page_bytes_max,
                bytes_beside=len(flow.environment),
                documents=documents,
            )
            rows = [replace(row, environment=flow.environment) for row in page.rows]
            return Listed(rows, page.following)

        page = await self._engine.slow_reads.ask(read)
        return Page(page.rows, None if page.following is None else token_of(page.following))

    async def list_all(
        self,
        wanted: ExecutionFilter,
        *,
        next_token: str | None,
        limit: int | None,
        flow_name: str | None = None,
        flow_prefix: str | None = None,
    ) -> Page[ExecutionRow]:
        """Executions of all flows, of one, or of those whose names begin so, without their documents. A page may be
        short before the last one.

        Newest first, or, if the filter has an end, those that ended last first; raises InvalidArgument if these are not
        executions without success. The token is the start, or end, and the id of the execution before the page.
        """
        if wanted.is_by_end and wanted.status not in UNSUCCESSFUL_STATUSES:
            raise InvalidArgument(
                "`endedFrom` and `endedTo` need a `status` of executions without success: "
                + ", ".join(UNSUCCESSFUL_STATUSES)
            )
        limits = self._engine.limits
        size = check_limit(limit, limits.executions_page_max)
        after = None if next_token is None else all_cursor_of(next_token)

        def read(connection: Connection) -> AllListed:
            flow_id = None if flow_name is None else require_flow(connection, flow_name).flow_id
            return list_all_executions(
                connection,
                wanted,
                after=after,
                limit=size,
                bytes_max=limits.page_bytes_max,
                flow_id=flow_id,
                flow_prefix=flow_prefix,
            )

        page = await self._engine.slow_reads.ask(read)
        following = page.following
        return Page(page.rows, None if following is None else all_token_of(following))

    async def history(self, flow_name: str, name: str, *, next_token: str | None, limit: int | None) -> Page[Event]:
        """Events in order; the token is the id of the event the next page starts with."""
        limits = self._engine.limits
        size = check_limit(limit, limits.page_max)
        first = event_id_of(next_token)

        def read(connection: Connection) -> tuple[Sequence[Event], int | None]:
            execution_id = require_id(connection, flow_name, name)
            return list_events_page(
                connection, execution_id, from_event_id=first, limit=size, bytes_max=limits.page_bytes_max
            )

        events, following = await self._engine.slow_reads.ask(read)
        return Page(events, None if following is None else str(following))

    async def _await_end(self, flow_name: str, name: str, seconds: float, documents: bool) -> ExecutionRow:
        watchers = self._engine.watchers
        with watchers.watch_name(flow_name, name) as watch:
            row = await self._find(flow_name, name, by_caller=True, documents=documents)
            if seconds <= 0 or _is_over(row):
                return row
            with watchers.watch_end(row.execution_id, watch):
                if not self._engine.membership.is_alone:
                    # other nodes' notifications carry no names
                    row = await self._find(flow_name, name, documents=documents)
                return await self._await_watch(watch, row, seconds, documents=documents)

    async def _await_watch(
        self, watch: Watch, row: ExecutionRow, seconds: float, *, documents: bool = True
    ) -> ExecutionRow:
        """The execution once it has ended, or at once if too many requests of the caller's key wait.

        `row` was read after `watch` began.
        """
        place = self._held.find()
        if place is None:
            return row
        with place:
            return await self._watch(watch, row, seconds, documents=documents)

    async def _watch(self, watch: Watch, row: ExecutionRow, seconds: float, *, documents: bool) -> ExecutionRow:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not _is_over(row) and not self._engine.watchers.is_stopping:
            left = until - loop.time()
            if left <= 0:
                break
            await watch.woken.is_set_within(min(left, LOOK_AGAIN_SECONDS))
            if watch.end is not None and watch.end.is_of(row):
                return watch.end.applied_to(row)
            watch.woken.clear()  # another execution of that name may have ended, or this one after a redrive
            row = await self._find(row.flow_name, row.name, documents=documents)
        return row

    async def _find(
        self, flow_name: str, name: str, *, by_caller: bool = False, documents: bool = True
    ) -> ExecutionRow:
        """The execution. `by_caller` if nothing was done for the caller yet, so that the request may be refused."""
        return await self._engine.reader.ask(
            lambda connection: require_execution(connection, flow_name, name, documents=documents),
            by_caller=by_caller,
        )


def _is_over(row: ExecutionRow) -> bool:
    return row.status is not Status.RUNNING or row.parked_error is not None


def require_execution(connection: Connection, flow_name: str, name: str, *, documents: bool = True) -> ExecutionRow:
    """The execution; raises FlowNotExists, ExecutionNotExists. As `find_execution` with or without `documents`."""
    row = find_execution(connection, flow_name, name, documents=documents)
    if row is None:
        require_flow(connection, flow_name)
        raise ExecutionNotExists(f"execution {name} of flow {flow_name} does not exist")
    return row


def require_id(connection: Connection, flow_name: str, name: str) -> str:
    """The id of an execution; raises FlowNotExists, ExecutionNotExists."""
    execution_id = find_id_by_names(connection, flow_name, name)
    if execution_id is None:
        require_flow(connection, flow_name)
        raise ExecutionNotExists(f"execution {name} of flow {flow_name} does not exist")
    return execution_id


def _require_same(row: ExecutionRow, input_text: str, qualifier: str | None) -> None:
    """Raises ExecutionInputDiffers if the execution was started with another input, or another qualifier.

    A redrive may have changed the qualifier since.
    """
    if not _is_same_json(row.input, input_text):
        raise ExecutionInputDiffers(f"execution {row.name} of flow {row.flow_name} runs with another input")
    runs = row.qualifier or LATEST
    if not row.redrive_count and runs != (qualifier or LATEST):
        raise ExecutionInputDiffers(f"execution {row.name} of flow {row.flow_name} runs with the qualifier {runs}")


def _is_same_json(one: str, other: str) -> bool:
    """Whether two texts hold the same JSON object; `""` is `{}`."""
    first, second = (json.dumps(load_json_object(text or "{}"), sort_keys=True) for text in (one, other))
    return first == second
