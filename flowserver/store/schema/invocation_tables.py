"""The table of asynchronous invocations (Serverless Tasks) and its indexes.

Instants are integer ms since the epoch, as in `tables`.
"""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Index, Integer, LargeBinary, Table, Text, text

from flowserver.store.schema.metadata import Name, metadata, optional, partial_index, required

HAS_NODE = text("node_id IS NOT NULL")
PAUSING = text("wake_at IS NOT NULL")
NOT_OVER = text("ended_at IS NULL")
OVER = text("ended_at IS NOT NULL")
UNWANTED = text("is_unwanted")
CALLBACK_DUE = text("callback_due")

invocations = Table(
    "invocations",
    metadata,
    Column("invocation_key", Text, primary_key=True),
    Column("service", Name, nullable=False),
    Column("qualifier", Text, nullable=False),
    *required(Name, "function", "invocation_id"),
    Column("status", Text, nullable=False),
    *optional(Text, "node_id", "parked_error"),
    Column("wake_at", BigInteger),
    *required(Integer, "attempt", "retries"),
    Column("is_unwanted", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    *required(Text, "request_id", "settings", "events"),
    Column("payload", LargeBinary, nullable=False),
    Column("result", LargeBinary),
    *optional(Text, "error", "cause"),
    Column("duration_ms", Integer),
    *optional(Text, "destination_status", "execution_id"),
    *required(Text, "flow_name", "execution_name", "step_name"),
    Column("callback_token", Text),
    Column("callback_due", Boolean, nullable=False),
    Column("traceparent", Text),
    CheckConstraint(
        "status IN ('Enqueued', 'Dequeued', 'Running', 'Retrying', 'Stopping',"
        " 'Succeeded', 'Failed', 'Stopped', 'Expired', 'Invalid')",
        name="status",
    ),
    CheckConstraint(
        "(status IN ('Succeeded', 'Failed', 'Stopped', 'Expired', 'Invalid')) = (ended_at IS NOT NULL)", name="ended_at"
    ),
    CheckConstraint("(ended_at IS NULL) = (node_id IS NOT NULL OR wake_at IS NOT NULL)", name="has_a_reason"),
    CheckConstraint("node_id IS NULL OR wake_at IS NULL", name="has_one_reason"),
    CheckConstraint("wake_at IS NULL OR status = 'Retrying'", name="retrying_wakes"),
    Index("uq_invocations_invocation_id", "service", "function", "invocation_id", unique=True),
)
"""Asynchronous invocations, from their submission until some days after their end.

One row holds everything: the state, the one reason to continue (the node with the lease, or the end of a pause), and
the transitions as JSON (`events`). `is_unwanted` marks an invocation that a committed turn wants stopped;
`callback_due` marks an ended one whose result has not reached the waiting task. `parked_error` says why the invocation
is parked; `node_id` is then `nodes.PARKED_HOLDER`, which no node takes over.
"""
Index(
    "ix_invocations_listed",
    invocations.c.service,
    invocations.c.function,
    invocations.c.created_at.desc(),
    invocations.c.invocation_key,
)
Index(
    "ix_invocations_status",
    invocations.c.service,
    invocations.c.function,
    invocations.c.status,
    invocations.c.created_at.desc(),
    invocations.c.invocation_key,
)
partial_index("ix_invocations_node_id", invocations.c.node_id, invocations.c.invocation_key, where=HAS_NODE)
partial_index("ix_invocations_wake_at", invocations.c.wake_at, where=PAUSING)
partial_index("ix_invocations_execution_id", invocations.c.execution_id, where=NOT_OVER)
partial_index("ix_invocations_ended_at", invocations.c.ended_at, where=OVER)
partial_index("ix_invocations_unwanted", invocations.c.is_unwanted, where=UNWANTED)
partial_index("ix_invocations_callback_due", invocations.c.callback_due, where=CALLBACK_DUE)
