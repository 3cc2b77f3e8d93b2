"""On whose behalf something is called, sent or submitted."""

import msgspec

from flowserver.machine.state import Execution


class Caller(msgspec.Struct, frozen=True):
    """An execution, as its functions see it."""

    execution_id: str
    flow_name: str
    execution_name: str

    @staticmethod
    def of(execution: Execution) -> "Caller":
        """The caller that an execution is."""
        return Caller(execution.execution_id, execution.flow_name, execution.name)
