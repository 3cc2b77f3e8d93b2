"""Steps that a redrive keeps although a later step of the same execution has undone their work, by the steps' names."""

from collections.abc import Mapping

from flowserver.flowtests.simulating.undo_names import undo_pairs_of
from flowserver.language.graph import Flow


def undone_steps(flow: Flow, succeeded: Mapping[str, int]) -> dict[str, str]:
    """By the name of each step that was undone the step that undid it.

    `succeeded` has by name the event of each step's last success. Steps in branches and loops are left out, as in
    simulations: which of their entries was undone is not known.
    """
    pairs = ((done.rpartition(".")[2], undo.rpartition(".")[2]) for done, undo in undo_pairs_of(flow))
    return {done: undo for done, undo in pairs if succeeded.get(undo, 0) > succeeded.get(done, 0) > 0}
