"""Which step lists a batch reads: none that it does not need, and not too much at once."""

from collections.abc import Mapping

from sqlalchemy import Connection

from flowserver.base.limits import Limits
from flowserver.engine.commit.crash_loop_guard import CrashLoopGuard, TooMuchAtOnce
from flowserver.store.executions.loading import StoredExecution, load_calls, load_scopes


def load_lists(
    connection: Connection,
    headers: Mapping[str, StoredExecution],
    broken: dict[str, str],
    ending: set[str],
    at_work: CrashLoopGuard,
    limits: Limits,
) -> int:
    """Add the step lists of executions that go on, and of those that are `ending` only the names of their calls.

    Returns how many bytes of documents that are. Notes in `broken` which cannot or must not be read. Raises NotMarked,
    TooMuchAtOnce.
    """
    running = {key: stored for key, stored in headers.items() if stored.execution.is_running and key not in broken}
    load_calls(connection, [running[key] for key in ending & running.keys()])
    whole = {key: each for key, each in running.items() if key not in ending and each.parked_error is None}
    sizes = {key: stored.execution.document_bytes for key, stored in whole.items()}
    if len(sizes) > 1 and sum(sizes.values()) > limits.execution_data_bytes_max:
        raise TooMuchAtOnce
    refused = at_work.admit(sizes)
    broken |= refused
    load_scopes(connection, [stored for key, stored in whole.items() if key not in refused], broken)
    return sum(sizes.values())
