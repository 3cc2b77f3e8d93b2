"""Reports the end of an execution or an asynchronous invocation to the task that waits for it.

A sub-flow is a task: a `sync` step starts its child with a task token of its own. An ended execution keeps
`callback_due` until the report is committed. The child's id follows from the attempt, so starting it again finds the
same child.
"""

from functools import partial

from flowserver.engine.commit.batch_items import Envelope
from flowserver.engine.context import EngineContext
from flowserver.machine.messages import Result, TaskReported
from flowserver.store.executions.saving import clear_callbacks
from flowserver.store.invocations.untold_results import clear_invocation_callbacks


class Callbacks:
    """Delivers results by task token, settling the ended execution's `callback_due` in the same commit."""

    def __init__(self, context: EngineContext) -> None:
        self._committer = context.committer
        self._tokens = context.tokens

    async def deliver(self, ended_execution_id: str, token: str, result: Result) -> None:
        """Report to the waiting task. It is settled even if the task has timed out. Between two attempts the
        task accepts no report, and recovery delivers it again.
        """
        if not await self._report(token, result, settles=ended_execution_id):
            await self._committer.write(partial(clear_callbacks, delivered=[(ended_execution_id, token)]))

    async def deliver_invocation(self, invocation_key: str, token: str, result: Result) -> None:
        """The same for an asynchronous invocation that has ended."""
        if not await self._report(token, result, settles_invocation=invocation_key):
            await self._committer.write(partial(clear_invocation_callbacks, keys=[invocation_key]))

    async def _report(
        self, token: str, result: Result, *, settles: str | None = None, settles_invocation: str | None = None
    ) -> bool:
        """Returns False for a token that this server cannot read."""
        claim = self._tokens.read(token)
        if claim is None:
            return False
        message = TaskReported(claim.scope_id, claim.entered_event_id, claim.wait_id, result)
        settles_token = None if settles is None else token
        envelope = Envelope(
            claim.execution_id,
            message,
            settles=settles,
            settles_token=settles_token,
            settles_invocation=settles_invocation,
        )
        await self._committer.submit(envelope)
        return True
