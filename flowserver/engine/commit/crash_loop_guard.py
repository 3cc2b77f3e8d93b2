"""Prevents a crash loop: one large execution must not end the process again and again.

Loading an execution may need more memory than there is. Then the system kills the process, and after the restart it
loads the same execution first. So a large execution is marked in the database before its scopes are loaded, in a
transaction of its own; the transaction that saves the result deletes the mark. A mark whose node is gone means that
the node ended uncleanly during this work. An execution with several such ends in a row is parked. Small executions are
never marked and cost nothing.
"""

from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import Connection

from flowserver.store.executions.crash_marks import any_was_at_work, clear_at_work, mark_at_work

LARGE_BYTES: Final = 1_048_576
"""An execution with more bytes of documents is large: loading them takes longer than a mark."""

UNCLEAN_ENDS_MAX: Final = 3
"""An execution is parked after so many unclean ends in a row during work on it."""


class TooMuchAtOnce(Exception):
    """The batch would hold too much in memory, or process a suspect with others: it must be divided."""


class NotMarked(Exception):
    """Large executions must be marked before they are loaded."""

    def __init__(self, execution_ids: Collection[str]) -> None:
        super().__init__(execution_ids)
        self.execution_ids = execution_ids


class CrashLoopGuard:
    """The marks of this process. Used only by the writer's thread."""

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}

    def admit(self, sizes: Mapping[str, int]) -> dict[str, str]:
        """Which of these executions must not be loaded, and why; `sizes` are the bytes of their documents.

        Raises NotMarked, TooMuchAtOnce. An execution with an unclean end is processed alone, so that no other one
        becomes a suspect with it.
        """
        large = [execution_id for execution_id, size in sizes.items() if size > LARGE_BYTES]
        unmarked = [execution_id for execution_id in large if execution_id not in self._ends]
        if unmarked:
            raise NotMarked(unmarked)
        if len(large) > 1 and any(self._ends[execution_id] for execution_id in large):
            raise TooMuchAtOnce
        return {key: _refusal(self._ends[key], sizes[key]) for key in large if self._ends[key] >= UNCLEAN_ENDS_MAX}

    def mark(self, connection: Connection, node_id: str, execution_ids: Collection[str]) -> dict[str, int]:
        """Mark them in a transaction of its own; pass the result to `marked` after its commit.

        Raises TooMuchAtOnce if one of several had an unclean end: only what is loaded next may be marked.
        """
        if len(execution_ids) > 1 and any_was_at_work(connection, execution_ids):
            raise TooMuchAtOnce
        return mark_at_work(connection, node_id, execution_ids)

    def marked(self, ends: Mapping[str, int]) -> None:
        """The marks are durable."""
        self._ends |= ends

    def clear(self, connection: Connection, node_id: str, execution_ids: Collection[str]) -> None:
        """Delete the marks of the executions that a batch has loaded, in its transaction.

        Call `cleared` after its commit. A batch that failed leaves its marks to the next batch that loads them.
        """
        marked = [execution_id for execution_id in execution_ids if execution_id in self._ends] if self._ends else []
        if marked:
            clear_at_work(connection, node_id, marked)

    def cleared(self, execution_ids: Collection[str]) -> None:
        """Their marks are durably deleted."""
        if self._ends:
            for execution_id in execution_ids:
                self._ends.pop(execution_id, None)

    def forget(self) -> None:
        """This process continues under another node id."""
        self._ends.clear()


def _refusal(ends: int, size: int) -> str:
    times = f"the server ended uncleanly {ends} times in a row while it worked on this execution"
    return f"{times}, which holds {size} bytes of data"
