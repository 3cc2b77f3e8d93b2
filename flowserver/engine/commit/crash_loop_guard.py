"""What keeps one large execution from ending the process again and again.

Reading an execution may take more memory than there is, and then the process is killed, restarted, and reads the same
execution first. So a large one is marked in the database before its step lists are read, in a transaction of its own;
the transaction that saves what came of it deletes the mark. A mark whose node is gone tells of an unclean end, and an
execution that was at work at several in a row is parked. Small executions are never marked and cost nothing.
"""

from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import Connection

from flowserver.store.executions.crash_marks import any_was_at_work, clear_at_work, mark_at_work

LARGE_BYTES: Final = 1_048_576
"""Documents of so many bytes make an execution large: reading them takes longer than a mark."""

UNCLEAN_ENDS_MAX: Final = 3
"""An execution that was at work at so many unclean ends in a row is parked."""


class TooMuchAtOnce(Exception):
    """The batch would hold too much in memory, or work on a suspect beside others: it must be divided."""


class NotMarked(Exception):
    """Large executions are to be read that are not marked yet."""

    def __init__(self, execution_ids: Collection[str]) -> None:
        super().__init__(execution_ids)
        self.execution_ids = execution_ids


class CrashLoopGuard:
    """The marks of this process. For one thread: the writer's."""

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}

    def admit(self, sizes: Mapping[str, int]) -> dict[str, str]:
        """Which of these executions must not be read, and why; `sizes` are the bytes of their documents.

        Raises NotMarked, TooMuchAtOnce. An execution that was at work at an unclean end is worked on alone, so that no
        other is suspected with it.
        """
        large = [execution_id for execution_id, size in sizes.items() if size > LARGE_BYTES]
        unmarked = [execution_id for execution_id in large if execution_id not in self._ends]
        if unmarked:
            raise NotMarked(unmarked)
        if len(large) > 1 and any(self._ends[execution_id] for execution_id in large):
            raise TooMuchAtOnce
        return {key: _refusal(self._ends[key], sizes[key]) for key in large if self._ends[key] >= UNCLEAN_ENDS_MAX}

    def mark(self, connection: Connection, node_id: str, execution_ids: Collection[str]) -> dict[str, int]:
        """Mark them in a transaction of its own; after its commit `marked` takes what this returns.

        Raises TooMuchAtOnce if one of several was at work at an unclean end: only what is read next may be marked.
        """
        if len(execution_ids) > 1 and any_was_at_work(connection, execution_ids):
            raise TooMuchAtOnce
        return mark_at_work(connection, node_id, execution_ids)

    def marked(self, ends: Mapping[str, int]) -> None:
        """The marks are durable."""
        self._ends |= ends

    def clear(self, connection: Connection, node_id: str, execution_ids: Collection[str]) -> None:
        """Delete the marks of the executions that a batch has read, with what it saves.

        After its commit `cleared` must follow. A batch that failed leaves its marks to the next one that reads them.
        """
        marked = [execution_id for execution_id in execution_ids if execution_id in self._ends] if self._ends else []
        if marked:
            clear_at_work(connection, node_id, marked)

    def cleared(self, execution_ids: Collection[str]) -> None:
        """Their marks are gone for good."""
        if self._ends:
            for execution_id in execution_ids:
                self._ends.pop(execution_id, None)

    def forget(self) -> None:
        """This process goes on as another node."""
        self._ends.clear()


def _refusal(ends: int, size: int) -> str:
    times = f"the server ended uncleanly {ends} times in a row while it worked on this execution"
    return f"{times}, which holds {size} bytes of data"
