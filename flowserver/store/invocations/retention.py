"""Deletes ended invocations, as many rows and bytes at a time as keep a transaction short."""

from itertools import accumulate

from sqlalchemy import Connection, bindparam, delete, func, select

from flowserver.store.schema.invocation_tables import OVER, invocations
from flowserver.store.sql.list_parameter import among, texts
from flowserver.store.sql.unreadable import is_text

_LISTED = among(invocations.c.invocation_key, bindparam("listed"))


def delete_ended_invocations(connection: Connection, before_ms: int, limit: int, bytes_max: int) -> int:
    """Delete up to `limit` invocations that ended before the instant, in the order of their ends; returns how many.

    Their payloads and results have at most `bytes_max` bytes together, unless the first alone has more. Rows that
    another node has locked are skipped.
    """
    found = connection.execute(_ENDED, {"b_before": before_ms, "b_limit": limit})
    sizes = [(row.invocation_key, row.bytes) for row in found if is_text(row.invocation_key)]
    sums = accumulate(size for _, size in sizes)
    fitting = sum(total <= bytes_max for total in sums)
    keys = [key for key, _ in sizes[: max(fitting, 1)]]
    if not keys:
        return 0
    listed = {"listed": texts(connection, keys)}
    mine = connection.execute(_LOCK_ENDED, listed).scalars().all()
    connection.execute(delete(invocations).where(_LISTED), {"listed": texts(connection, mine)})
    return len(mine)


# The database knows the lengths of values stored outside their row without reading them.
_BYTES = func.length(invocations.c.payload) + func.coalesce(func.length(invocations.c.result), 0)
_ENDED = (
    select(invocations.c.invocation_key, _BYTES.label("bytes"))
    .where(OVER, invocations.c.ended_at < bindparam("b_before"), ~invocations.c.callback_due)
    .order_by(invocations.c.ended_at)
    .limit(bindparam("b_limit"))
)
_LOCK_ENDED = (
    select(invocations.c.invocation_key)
    .where(_LISTED, OVER)
    .order_by(invocations.c.invocation_key)
    .with_for_update(skip_locked=True)
)
