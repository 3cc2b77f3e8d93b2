"""Which scopes a batch loads: only those that it needs, and not too many bytes at once."""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection

from flowserver.base.limits import Limits
from flowserver.engine.commit.crash_loop_guard import CrashLoopGuard, TooMuchAtOnce
from flowserver.store.executions.loading import load_calls, load_scopes
from flowserver.store.executions.stored_execution import StoredExecution


def load_lists(
    connection: Connection,
    headers: Mapping[str, StoredExecution],
    broken: dict[str, str],
    ending: set[str],
    guard: CrashLoopGuard,
    limits: Limits,
    redriven: Collection[str] = (),
) -> int:
    """Load the scopes of the executions; of those that are `ending` only the names of their calls.

    Returns the bytes of their documents. Adds to `broken` those that cannot or must not be read, with the reason. Those
    that are `redriven` are loaded later, but count. Raises NotMarked, TooMuchAtOnce.
    """
    running = {key: stored for key, stored in headers.items() if stored.execution.is_running and key not in broken}
    load_calls(connection, [running[key] for key in ending & running.keys()])
    whole = {key: each for key, each in running.items() if key not in ending and each.parked_error is None}
    sizes = {key: stored.execution.document_bytes for key, stored in whole.items()}
    sizes |= {key: headers[key].execution.document_bytes for key in headers.keys() & redriven}
    if len(sizes) > 1 and sum(sizes.values()) > limits.execution_data_bytes_max:
        raise TooMuchAtOnce
    refused = guard.admit(sizes)
    broken |= refused
    load_scopes(connection, [stored for key, stored in whole.items() if key not in refused], broken)
    return sum(sizes.values())
