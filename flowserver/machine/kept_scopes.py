"""What an execution that ends without success keeps for a redrive, as the machine knows it."""

from collections.abc import Mapping
from typing import NamedTuple

from flowserver.machine.state import Execution, Finished, Scope


class Kept(NamedTuple):
    """How the scopes that an execution keeps differ from its rows as they were before the turn that ended it."""

    touched: set[int]
    removed: set[int]
    joined: set[int]
    finished: dict[int, list[int]]
    """By scope id the finished items that were added."""


class Taken(NamedTuple):
    """What a join has taken, until its step is left: a redrive of a step that fails there makes the join again."""

    finished: dict[int, Finished]
    new_items: list[int]
    """Those of the finished items that are of this turn."""
    children: list[Scope]
    was_joined: bool = False
    """Whether the scope had made another join in this turn."""


def keep_scopes(execution: Execution, kept: Kept, taken: Mapping[int, Taken]) -> Kept:
    """Put the execution's scopes aside as they are, with what joins have taken whose steps failed then.

    `kept` tells what the turn has changed so far; what is returned, that and what is given back to joins.
    """
    scopes = dict(execution.scopes)
    execution.kept_bytes = execution.document_bytes
    for scope_id, each in taken.items():
        if not each.was_joined:
            kept.joined.discard(scope_id)
        scopes[scope_id].finished = each.finished
        kept.finished[scope_id] = each.new_items
        execution.kept_bytes += sum(finished.document_bytes for finished in each.finished.values())
        for child in each.children:
            scopes[child.scope_id] = child
            kept.touched.add(child.scope_id)
            kept.removed.discard(child.scope_id)
            execution.kept_bytes += child.document_bytes
    execution.kept = scopes
    return kept
