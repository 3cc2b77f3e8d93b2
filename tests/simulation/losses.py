"""What was lost, as the world knows it: a sweep may find that, and what is on its way, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence

from tests.simulation.node import Node, Parcel
from tests.simulation.witness import Run, Wrong


class Losses:
    """Keeps account of what went wrong until everything has been made good."""

    def __init__(self) -> None:
        self._lost: set[str] = set()
        """Executions of which something may be lost."""
        self._excused: set[str] = set()
        """Executions that are silenced, and those that would tell them of their end."""
        self.shaken = False
        """Something went wrong, and nobody has looked for what was lost since."""

    def __bool__(self) -> bool:
        return bool(self._lost)

    def shake(self, parcels: Iterable[Parcel]) -> None:
        """These may be lost."""
        self.shaken = True
        for parcel in parcels:
            self._lost |= parcel.execution_ids

    def lose_calls(self, node: Node) -> None:
        """All that the node has under way may be lost."""
        self.shaken = True
        self._lost |= {key[0] for key in node.calls}

    def excuse(self, parcel: Parcel) -> None:
        """It was kept from those it concerns."""
        self._excused |= parcel.execution_ids

    def made_good(self) -> None:
        """Nothing is lost any more."""
        self._lost.clear()

    def judge(self, found: Sequence[str], nodes: Iterable[Node], runs: Mapping[str, Run]) -> bool:
        """Whether a sweep has found something; raises Wrong for what should not have needed it."""
        on_the_way = {each for node in nodes for parcel in node.inbox for each in parcel.execution_ids}
        for execution_id in found:
            if execution_id not in self._lost | self._excused | on_the_way:
                raise Wrong("it was forgotten though nothing went wrong", runs[execution_id])
        return bool(found)
