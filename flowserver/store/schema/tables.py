"""The tables of flows, executions, functions and the server itself, and their indexes.

With the other `…_tables` of this folder they are the only source of the schema; a test checks that `migrations/`
produce exactly it.

JSON is stored as text and never queried inside. Instants are integer ms since the epoch. Frequent statements use the
execution id as their key, so that the tables could be distributed by it.
"""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Index, Integer, Table, Text, false, text

from flowserver.store.schema.metadata import Name, metadata, optional, partial_index, required

flows = Table(
    "flows",
    metadata,
    Column("flow_id", Text, primary_key=True),
    Column("name", Name, nullable=False),
    *required(Text, "description", "type", "role_arn", "execution_mode", "external_storage_location", "environment"),
    Column("resource_group_id", Text, nullable=False, server_default=text("''")),
    Column("definition_id", Text, nullable=False),
    *required(BigInteger, "created_at", "modified_at"),
    Column("deleted_at", BigInteger),
    Column("retention_days", Integer),
    Column("last_version", Integer, nullable=False, server_default=text("0")),
    Column("on_retries_exhausted", Text, nullable=False, server_default=text("'fail'")),
)
"""Flows. The row of a deleted flow stays while executions refer to it; its name is free at once.

`retention_days` is how long ended executions are kept: 0 for ever, NULL for the server's setting. `last_version` is the
number of the version that was published last, 0 before the first. `on_retries_exhausted` says how
executions take a failure that nothing catches: `fail` or `waitForRedrive`; each keeps what it was at its start.
"""
partial_index("uq_flows_live_name", flows.c.name, unique=True, where=text("deleted_at IS NULL"))
partial_index("ix_flows_deleted", flows.c.flow_id, where=text("deleted_at IS NOT NULL"))

definitions = Table(
    "definitions",
    metadata,
    Column("definition_id", Text, primary_key=True),
    Column("flow_id", Text, nullable=False, index=True),
    Column("text", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)
"""The definitions of flows; a text never changes. An execution keeps the definition that it started with."""

RUNNING = text("status = 'Running'")
RUNNING_VERSION = text("flow_version IS NOT NULL AND status = 'Running'")
NOT_ENDED = text("status NOT IN ('Succeeded', 'Failed', 'Stopped', 'TimedOut')")
"""Running, or with a damaged status."""

UNSUCCESSFUL = text("status <> 'Succeeded' AND status <> 'Running'")
"""Ended without success. SQLite checks the condition of an index at each write of a row: a list after IN would cost
four times as much as the rest of the write.
"""

CALLBACK_DUE = text("callback_due")
DELETABLE = text("stopped_at IS NOT NULL AND NOT callback_due")
"""Ended, and no callback is due: retention may delete it."""

PARKED = text("parked_error IS NOT NULL AND stopped_at IS NULL")
"""Parked and not ended. Uses `stopped_at`, so that a planner does not choose an index of another status."""

WAITING_FOR_REDRIVE = text("waiting_steps > 0 AND stopped_at IS NULL")
SUB_FLOW = text("parent_id IS NOT NULL")
NOT_STOPPED = text("stopped_at IS NULL")
STOP_DUE = text("stop_due AND stopped_at IS NULL")

executions = Table(
    "executions",
    metadata,
    Column("execution_id", Text, primary_key=True),
    *required(Text, "flow_id", "flow_name"),
    Column("name", Name, nullable=False),
    *required(Text, "definition_id", "status"),
    *required(Integer, "version", "next_event_id", "next_scope_id", "next_wait_id"),
    Column("started_at", BigInteger, nullable=False),
    Column("stopped_at", BigInteger),
    Column("deadline_at", BigInteger, nullable=False),
    Column("callback_token", Text),
    Column("callback_due", Boolean, nullable=False),
    Column("parked_error", Text),
    Column("document_bytes", BigInteger, nullable=False, server_default=text("0")),
    Column("redrive_count", Integer, nullable=False, server_default=text("0")),
    Column("redriven_at", BigInteger),
    Column("flow_version", Integer),
    Column("flow_alias", Text),
    Column("waiting_steps", Integer),
    Column("parent_id", Text),
    Column("parent_wait", Integer),
    Column("depth", Integer, nullable=False, server_default=text("0")),
    Column("stop_due", Boolean, nullable=False, server_default=false()),
    CheckConstraint(
        "status IN ('Running', 'Succeeded', 'Failed', 'Stopped', 'TimedOut')",
        name="status",
    ),
    CheckConstraint("(status = 'Running') = (stopped_at IS NULL)", name="stopped_at"),
    Index("uq_executions_flow_id_name", "flow_id", "name", unique=True),
)
"""The headers of executions: narrow rows that every turn changes. `version` rises with every commit, so that a node
with an older copy cannot write.

`callback_due` marks an ended execution whose result has not reached the waiting task; `parked_error` is set if the
server could not run the execution. `document_bytes` is the size of all `local` and `step_input` of its scopes, known
before they are read; after the end, of those that it keeps for a redrive. `redriven_at` is the last redrive's instant.
`flow_version` is the published version that it runs, NULL for the flow's own definition, and `flow_alias` the alias
that chose it. `waiting_steps` counts the steps that have failed and wait for a redrive; NULL if a failure ends it.

`parent_id` is the execution whose step started it, `depth` the number of its ancestors. `parent_wait` is the number of
the wait, of a scope of the parent, that owns it; NULL if none does. `stop_due` is set once that wait is over.
"""
Index(
    "ix_executions_flow_id_status",
    executions.c.flow_id,
    executions.c.status,
    executions.c.started_at.desc(),
    executions.c.name,
)
Index("ix_executions_started_at", executions.c.started_at.desc(), executions.c.execution_id)
partial_index(
    "ix_executions_unsuccessful", executions.c.started_at.desc(), executions.c.execution_id, where=UNSUCCESSFUL
)
partial_index(
    "ix_executions_unsuccessful_ended",
    executions.c.status,
    executions.c.stopped_at.desc(),
    executions.c.execution_id,
    where=UNSUCCESSFUL,
)
partial_index("ix_executions_ended", executions.c.flow_id, executions.c.stopped_at, where=DELETABLE)
partial_index("ix_executions_deadline_at", executions.c.deadline_at, where=RUNNING)
partial_index("ix_executions_callback_due", executions.c.callback_due, where=CALLBACK_DUE)
partial_index(
    "ix_executions_parked", executions.c.flow_id, executions.c.started_at.desc(), executions.c.name, where=PARKED
)
partial_index(
    "ix_executions_waiting",
    executions.c.flow_id,
    executions.c.started_at.desc(),
    executions.c.name,
    where=WAITING_FOR_REDRIVE,
)
partial_index(
    "ix_executions_all_waiting",
    executions.c.started_at.desc(),
    executions.c.execution_id,
    where=WAITING_FOR_REDRIVE,
)
partial_index("ix_executions_parent_id", executions.c.parent_id, executions.c.parent_wait, where=SUB_FLOW)
partial_index("ix_executions_stop_due", executions.c.execution_id, where=STOP_DUE)
partial_index("ix_executions_flow_version", executions.c.flow_id, executions.c.flow_version, where=RUNNING_VERSION)

execution_documents = Table(
    "execution_documents",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("input", Text, nullable=False),
    *optional(Text, "output", "error", "cause", "redrive_token", "failed_step"),
)
"""The documents of executions, which few turns read or change. `input` is the text that the caller sent,
`redrive_token` the client token of the last redrive; `failed_step` is the path of the step that failed. While steps
wait for a redrive, `error`, `cause` and `failed_step` are those of the first."""

WAKES = text("wake_at IS NOT NULL")
TASK = text("wait = 'task'")
READY = text("wait = 'ready'")

scopes = Table(
    "scopes",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("scope_id", Integer, primary_key=True),
    Column("parent_id", Integer),
    *required(Integer, "list_id", "item", "last_event_id", "step_index", "entered_event_id"),
    Column("wait", Text, nullable=False),
    Column("wait_id", Integer, nullable=False),
    Column("wake_at", BigInteger),
    Column("node_id", Text),
    Column("attempt", Integer, nullable=False),
    Column("retries", Text, nullable=False),
    Column("option", Integer),
    *required(Integer, "next_item", "open_items"),
    Column("local", Text, nullable=False),
    *optional(Text, "step_input", "child_execution_id"),
    Column("child_wait", Integer),
    CheckConstraint(
        "wait IN ('ready', 'timer', 'task', 'token', 'child', 'join', 'redrive', 'done')",
        name="wait",
    ),
    CheckConstraint("wait <> 'timer' OR wake_at IS NOT NULL", name="timer_wakes"),
    CheckConstraint("(wait = 'task') = (node_id IS NOT NULL)", name="task_is_leased"),
    sqlite_with_rowid=False,
)
"""One row per live scope: its state, its one reason to wake up, and the node that makes its call, together.

There is no second table of timers or tasks that could disagree with it. `child_execution_id` is the execution that a
scope with the wait `child` waits for. `child_wait` is the number of the wait whose attempt started it, and stays when
that execution has ended: a redrive continues it.
"""
partial_index("ix_scopes_wake_at", scopes.c.wake_at, where=WAKES)
partial_index("ix_scopes_node_id", scopes.c.node_id, scopes.c.execution_id, scopes.c.scope_id, where=TASK)
partial_index("ix_scopes_ready", scopes.c.execution_id, where=READY)

finished_items = Table(
    "finished_items",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("scope_id", Integer, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("local", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""Results of finished branches and iterations, for the join of the scope that opened them.

Written once and read at the join. They are not in `scopes`, because loading an execution reads all its scopes.
"""

kept_scopes = Table(
    "kept_scopes",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("scope_id", Integer, primary_key=True),
    Column("parent_id", Integer),
    Column("list_id", Integer, nullable=False),
    Column("item", Integer, nullable=False),
    Column("step_index", Integer, nullable=False),
    Column("entered_event_id", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("option", Integer),
    Column("next_item", Integer, nullable=False),
    Column("open_items", Integer, nullable=False),
    Column("local", Text, nullable=False),
    Column("step_input", Text),
    Column("has_failed", Integer, nullable=False, server_default=text("0")),
    Column("child_wait", Integer),
    sqlite_with_rowid=False,
)
"""The scopes with which an execution has ended that did not succeed, for a redrive; deleted with its history.

They wait for nothing, so they are no rows of `scopes`, which has live ones only. `has_failed` is 1 for the one
whose step has failed; the others were aborted.
"""

kept_items = Table(
    "kept_items",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("scope_id", Integer, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("local", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""The finished items of these scopes."""

histories = Table(
    "histories",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("last_event_id", Integer, primary_key=True),
    Column("first_event_id", Integer, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("events", Text, nullable=False),
)
"""Histories, append only: the events of one turn in one row (see `history`). Event ids of an execution have no gaps.

The key holds the last event id of a row, so an event is in the first row at or after its id. The table has row ids:
without them SQLite would give pages of their own to rows larger than a quarter of a page.
"""

history_parts = Table(
    "history_parts",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("event_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Large values of events. Each is stored once, under the id of the first event that shows it."""

async_configs = Table(
    "async_configs",
    metadata,
    Column("service", Name, primary_key=True),
    Column("function", Name, primary_key=True),
    Column("qualifier", Name, primary_key=True),
    Column("document", Text, nullable=False),
    *required(BigInteger, "created_at", "modified_at"),
)
"""Configurations of asynchronous invocations: `document` holds the fields that were set, as JSON."""

functions = Table(
    "functions",
    metadata,
    Column("service", Name, primary_key=True),
    Column("function", Name, primary_key=True),
    *required(Text, "url", "headers"),
    Column("timeout_seconds", Integer, nullable=False),
    *optional(Text, "initialize_url", "pre_stop_url"),
    *optional(Integer, "hook_seconds", "concurrency_max", "waiting_max"),
    *required(BigInteger, "created_at", "modified_at"),
)
"""The registry of functions. `service` may contain a qualifier (`s.prod`); it is "" for ARNs without a service.

`hook_seconds` limits the calls of `initialize_url` and `pre_stop_url`. NULL in `concurrency_max` means that only the
server's limit applies; in `hook_seconds` and `waiting_max` NULL means the default.
"""

access_keys = Table(
    "access_keys",
    metadata,
    Column("access_key_id", Text, primary_key=True),
    Column("secret", Text, nullable=False),
    Column("token_digest", Text, nullable=False, unique=True),
    Column("label", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
    Column("role", Text, nullable=False, server_default=text("'admin'")),
    Column("flows", Text, nullable=False, server_default=text("''")),
    Column("expires_at", BigInteger),
    Column("last_used_at", BigInteger),
)
"""Access keys. The secret is stored encrypted or as it is, because signatures are computed with it; the bearer token as
SHA-256."""

nonces = Table(
    "nonces",
    metadata,
    Column("access_key_id", Text, primary_key=True),
    Column("nonce", Text, primary_key=True),
    Column("expires_at", BigInteger, nullable=False, index=True),
    sqlite_with_rowid=False,
)
"""Signature nonces, kept while a request with them could be replayed."""

nodes = Table(
    "nodes",
    metadata,
    Column("node_id", Text, primary_key=True),
    Column("session_name", Text, nullable=False),
    *required(BigInteger, "started_at", "heartbeat_at", "beats"),
    Column("is_leaving", Boolean, nullable=False),
)
"""Leases of nodes: a server process may write, and keeps its calls, while its row is here.

A live node increases `beats`; a node that sees it unchanged for too long deletes the row. `heartbeat_at` is for people
only. `session_name` is the name of the node's database sessions, so that another node can terminate them.
"""

at_work = Table(
    "at_work",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("node_id", Text, primary_key=True),
    Column("unclean_ends", Integer, nullable=False),
)
"""Large executions that a node is working on: written before the node reads one, deleted in the commit of its turn.

So the row of a dead node shows that it died during this work. `unclean_ends` counts earlier deaths in a row.
"""

secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Keys that the server generates for itself, such as the key that authenticates task tokens."""
