"""The end of an execution as its commit left it, for a reader that has the row from before it."""

from dataclasses import dataclass

from msgspec.structs import replace

from flowserver.base.json_values import dump_json
from flowserver.machine.state import Execution, Status
from flowserver.store.executions.shown_executions import ExecutionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of an execution; `output` is JSON text, `stopped_at` in ms."""

    execution_id: str
    status: Status
    stopped_at: int | None
    output: str | None
    error: str | None
    cause: str | None
    failed_step: str | None = None
    redrive_count: int = 0

    @staticmethod
    def of(execution: Execution) -> "End":
        """The end of an execution that is over."""
        return End(
            execution_id=execution.execution_id,
            status=execution.status,
            stopped_at=execution.stopped_at,
            output=None if execution.output is None else dump_json(execution.output),
            error=execution.error,
            cause=execution.cause,
            failed_step=execution.failed_step,
            redrive_count=execution.redrive_count,
        )

    def is_of(self, row: ExecutionRow) -> bool:
        """Whether it is the end of this execution, which was not redriven since its row was read.

        A redrive changes more than its end: perhaps the definition.
        """
        return (self.execution_id, self.redrive_count) == (row.execution_id, row.redrive_count)

    def applied_to(self, row: ExecutionRow) -> ExecutionRow:
        """The ended execution, from a row that was read before its end, and that `is_of` holds for."""
        return replace(
            row,
            status=self.status,
            stopped_at=self.stopped_at,
            output=self.output,
            error=self.error,
            cause=self.cause,
            failed_step=self.failed_step,
            waiting_steps=0 if row.waiting_steps is not None else None,
        )
