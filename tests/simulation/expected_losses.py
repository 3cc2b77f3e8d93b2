"""The work that the injected faults may have lost. A sweep may find this and what is in an inbox, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence

from tests.simulation.node import InboxItem, Node
from tests.simulation.witness import Run, Violation


class ExpectedLosses:
    """Records what faults may have lost, until sweeps have recovered it."""

    def __init__(self) -> None:
        self._lost: set[str] = set()
        """Executions that may have lost a message or a call."""
        self._withheld: set[str] = set()
        """Executions cut off from messages, and the executions that would report their end to them."""
        self.needs_sweep = False
        """A fault was injected, and no sweep has run since."""

    def __bool__(self) -> bool:
        return bool(self._lost)

    def suspect(self, parcels: Iterable[InboxItem]) -> None:
        """The messages of these parcels may be lost."""
        self.needs_sweep = True
        for parcel in parcels:
            self._lost |= parcel.execution_ids

    def lose_calls(self, node: Node) -> None:
        """All calls that the node has under way may be lost."""
        self.needs_sweep = True
        self._lost |= {key[0] for key in node.calls}

    def withheld(self, parcel: InboxItem) -> None:
        """The parcel was withheld from its executions."""
        self._withheld |= parcel.execution_ids

    def recovered(self) -> None:
        """All losses are recovered."""
        self._lost.clear()

    def judge(self, found: Sequence[str], nodes: Iterable[Node], runs: Mapping[str, Run]) -> bool:
        """Return whether a sweep has found anything; raises Violation for an execution without a recorded loss."""
        on_the_way = {each for node in nodes for parcel in node.inbox for each in parcel.execution_ids}
        for execution_id in found:
            if execution_id not in self._lost | self._withheld | on_the_way:
                raise Violation("it was lost without a fault", runs[execution_id])
        return bool(found)
