"""Submits the asynchronous invocations that task steps order, as long as their steps wait for them.

The key of an invocation follows from the attempt that submits it, so ordering the attempt again finds the same one. A
turn that no longer wants the invocation stops it in its own commit (`StopInvocation`), and the submission looks for the
waiting step in its transaction. So whichever of the two commits first, no unwanted invocation is left.
"""

from sqlalchemy import Connection

from flowserver.base.errors import FlowServerError
from flowserver.base.json_values import dump_json_bytes
from flowserver.base.limits import Limits
from flowserver.engine.commit.outage_retry import retry_until_available
from flowserver.engine.invocations.invocations import Invocations
from flowserver.language.graph import FunctionTarget, Pattern
from flowserver.language.targets import INVOCATION_ID
from flowserver.machine.commands import Caller, InvokeTask
from flowserver.machine.messages import Failure, Result, Success
from flowserver.store.executions.due import waits_for_call
from flowserver.store.invocations.submissions import NewInvocation


class NotAwaited(Exception):
    """The step does not wait for this invocation any more, so it must not be submitted."""


class InvocationSubmitter:
    """Submits on behalf of steps."""

    def __init__(self, invocations: Invocations, limits: Limits) -> None:
        self._invocations = invocations
        self._limits = limits

    async def submit(
        self, caller: Caller, command: InvokeTask, target: FunctionTarget, traceparent: str = ""
    ) -> Result:
        """Submit what the step orders.

        Returns a Success of `{}` for requestResponse, whose `$local` it becomes; for the patterns that wait, of the
        texts `RequestId` and `StatefulAsyncInvocationId`, for the history to show. What cannot be submitted is a
        Failure of `FC.` and the code that the function's API would answer.
        """
        invocation_id = (command.params or {}).get(INVOCATION_ID)
        payload = dump_json_bytes(command.input)
        if len(payload) > self._limits.async_payload_bytes_max:
            bound = f"{self._limits.async_payload_bytes_max}, the limit async_payload_bytes_max"
            return Failure("FC.EntityTooLarge", f"the step's input has {len(payload)} bytes, more than {bound}")
        new = NewInvocation(
            service=target.service,
            qualifier=target.qualifier,
            function=target.function,
            payload=payload,
            invocation_key=command.submission_key,
            request_id=command.submission_request_id,
            invocation_id=None if invocation_id is None else str(invocation_id),
            execution_id=caller.execution_id,
            flow_name=caller.flow_name,
            execution_name=caller.execution_name,
            step_name=command.step_name,
            callback_token=command.token if command.pattern is Pattern.SYNC else None,
            traceparent=traceparent or None,
        )
        return await self._submit(caller.execution_id, command, new)

    async def _submit(self, execution_id: str, command: InvokeTask, new: NewInvocation) -> Result:
        def check(connection: Connection) -> None:
            if not waits_for_call(connection, execution_id, command.scope_id, command.wait_id):
                raise NotAwaited

        try:
            row = await retry_until_available(lambda: self._invocations.submit(new, check=check))
        except FlowServerError as error:
            return Failure.of(error, "FC")
        except NotAwaited:
            return Failure("FnF.RuntimeError", "the step no longer waits for its submission")
        if command.pattern is Pattern.REQUEST_RESPONSE:
            return Success({})
        return Success({"RequestId": row.request_id, "StatefulAsyncInvocationId": row.invocation_id})
