"""The tables of flows, executions, functions and the server itself, and their indexes, each with its reason.

With `invocation_tables` and `queue_tables` these are all; `migrations/` must give exactly them; a test compares them.

JSON is stored as the text it came as or was dumped to; nothing queries inside. Instants are integer ms since the
epoch. Hot statements are keyed by execution id, so that the tables could be distributed by it.
"""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Index, Integer, Table, Text, text

from flowserver.store.schema.metadata import Name, metadata

flows = Table(
    "flows",
    metadata,
    Column("flow_id", Text, primary_key=True),
    Column("name", Name, nullable=False),
    Column("description", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("role_arn", Text, nullable=False),
    Column("execution_mode", Text, nullable=False),
    Column("external_storage_location", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("resource_group_id", Text, nullable=False, server_default=text("''")),
    Column("definition_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("modified_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),
    Column("retention_days", Integer),
)
"""The holder of a name. A deleted flow stays, as long as executions refer to it; its name is free at once.

`retention_days` says how long its ended executions are kept: 0 for ever, NULL as long as the server's setting says.
"""
Index(
    "uq_flows_live_name",
    flows.c.name,
    unique=True,
    sqlite_where=text("deleted_at IS NULL"),
    postgresql_where=text("deleted_at IS NULL"),
)
Index(
    "ix_flows_deleted",
    flows.c.flow_id,
    sqlite_where=text("deleted_at IS NOT NULL"),
    postgresql_where=text("deleted_at IS NOT NULL"),
)

definitions = Table(
    "definitions",
    metadata,
    Column("definition_id", Text, primary_key=True),
    Column("flow_id", Text, nullable=False, index=True),
    Column("text", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)
"""One immutable text of a flow. Executions pin the one they started with, so updates never touch them."""

RUNNING = text("status = 'Running'")
NOT_ENDED = text("status NOT IN ('Succeeded', 'Failed', 'Stopped', 'TimedOut')")
"""The same, and what has a status that makes no sense."""

CALLBACK_DUE = text("callback_due")
FORGETTABLE = text("stopped_at IS NOT NULL AND NOT callback_due")
"""Ended, and nobody has to be told: retention may delete it."""

PARKED = text("parked_error IS NOT NULL AND stopped_at IS NULL")
"""Set aside, and not ended since. By `stopped_at`, so that no index of another status looks better to a planner."""

executions = Table(
    "executions",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("flow_id", Text, nullable=False),
    Column("flow_name", Text, nullable=False),
    Column("name", Name, nullable=False),
    Column("definition_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("next_event_id", Integer, nullable=False),
    Column("next_scope_id", Integer, nullable=False),
    Column("next_wait_id", Integer, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("stopped_at", BigInteger),
    Column("deadline_at", BigInteger, nullable=False),
    Column("callback_token", Text),
    Column("callback_due", Boolean, nullable=False),
    Column("parked_error", Text),
    Column("document_bytes", BigInteger, nullable=False, server_default=text("0")),
    CheckConstraint(
        "status IN ('Running', 'Succeeded', 'Failed', 'Stopped', 'TimedOut')",
        name="status",
    ),
    CheckConstraint("(status = 'Running') = (stopped_at IS NULL)", name="stopped_at"),
    Index("uq_executions_flow_id_name", "flow_id", "name", unique=True),
)
"""The header: narrow and hot. `version` rises with every commit and fences whoever holds an older copy.

`callback_due` marks an ended execution whose waiting task has not been told yet; `parked_error` one that our own
code could not run. `document_bytes` is the size of all `local` and `step_input` of its scopes, so that it is known
before they are read.
"""
Index(
    "ix_executions_flow_id_status",
    executions.c.flow_id,
    executions.c.status,
    executions.c.started_at.desc(),
    executions.c.name,
)
Index(
    "ix_executions_ended",
    executions.c.flow_id,
    executions.c.stopped_at,
    sqlite_where=FORGETTABLE,
    postgresql_where=FORGETTABLE,
)
Index("ix_executions_deadline_at", executions.c.deadline_at, sqlite_where=RUNNING, postgresql_where=RUNNING)
Index(
    "ix_executions_callback_due",
    executions.c.callback_due,
    sqlite_where=CALLBACK_DUE,
    postgresql_where=CALLBACK_DUE,
)
Index(
    "ix_executions_parked",
    executions.c.flow_id,
    executions.c.started_at.desc(),
    executions.c.name,
    sqlite_where=PARKED,
    postgresql_where=PARKED,
)

execution_documents = Table(
    "execution_documents",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("input", Text, nullable=False),
    Column("output", Text),
    Column("error", Text),
    Column("cause", Text),
)
"""What is wide and cold, kept off the hot row. `input` is the text that the caller sent."""

WAKES = text("wake_at IS NOT NULL")
TASK = text("wait = 'task'")
READY = text("wait = 'ready'")

scopes = Table(
    "scopes",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("scope_id", Integer, primary_key=True),
    Column("parent_id", Integer),
    Column("list_id", Integer, nullable=False),
    Column("item", Integer, nullable=False),
    Column("last_event_id", Integer, nullable=False),
    Column("step_index", Integer, nullable=False),
    Column("entered_event_id", Integer, nullable=False),
    Column("wait", Text, nullable=False),
    Column("wait_id", Integer, nullable=False),
    Column("wake_at", BigInteger),
    Column("node_id", Text),
    Column("attempt", Integer, nullable=False),
    Column("retries", Text, nullable=False),
    Column("option", Integer),
    Column("next_item", Integer, nullable=False),
    Column("open_items", Integer, nullable=False),
    Column("local", Text, nullable=False),
    Column("step_input", Text),
    Column("child_execution_id", Text),
    CheckConstraint(
        "wait IN ('ready', 'timer', 'task', 'token', 'child', 'join', 'done')",
        name="wait",
    ),
    CheckConstraint("wait <> 'timer' OR wake_at IS NOT NULL", name="timer_wakes"),
    CheckConstraint("(wait = 'task') = (node_id IS NOT NULL)", name="task_is_leased"),
    sqlite_with_rowid=False,
)
"""One row per live scope: its state, its one reason to wake up, and the node that makes its call, together.

There is no second table of timers or tasks that could disagree with it. `child_execution_id` is the execution that a
scope waits for by `child`.
"""
Index("ix_scopes_wake_at", scopes.c.wake_at, sqlite_where=WAKES, postgresql_where=WAKES)
Index(
    "ix_scopes_node_id",
    scopes.c.node_id,
    scopes.c.execution_id,
    scopes.c.scope_id,
    sqlite_where=TASK,
    postgresql_where=TASK,
)
Index("ix_scopes_ready", scopes.c.execution_id, sqlite_where=READY, postgresql_where=READY)

finished_items = Table(
    "finished_items",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("scope_id", Integer, primary_key=True),
    Column("item", Integer, primary_key=True),
    Column("local", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""What finished branches and iterations leave for the join of the scope that opened them.

Written once and read at the join. They are not rows of `scopes`, all of which are read to load an execution.
"""

histories = Table(
    "histories",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("last_event_id", Integer, primary_key=True),
    Column("first_event_id", Integer, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("events", Text, nullable=False),
)
"""History; append only; the events of one turn in one row (`history` says how); ids dense per execution.

The key holds the last id of a row, so that the row which an event is in is the first at or after it. With row ids,
because rows of more than a quarter of a page would take pages of their own in a table without.
"""

history_parts = Table(
    "history_parts",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("event_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Large values of events, each once however many events show it; named by the event that showed it first."""

async_configs = Table(
    "async_configs",
    metadata,
    Column("service", Name, primary_key=True),
    Column("function", Name, primary_key=True),
    Column("qualifier", Name, primary_key=True),
    Column("document", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("modified_at", BigInteger, nullable=False),
)
"""How asynchronous invocations of a function go: `document` holds the fields that were set, as JSON."""

functions = Table(
    "functions",
    metadata,
    Column("service", Name, primary_key=True),
    Column("function", Name, primary_key=True),
    Column("url", Text, nullable=False),
    Column("headers", Text, nullable=False),
    Column("timeout_seconds", Integer, nullable=False),
    Column("initialize_url", Text),
    Column("pre_stop_url", Text),
    Column("hook_seconds", Integer),
    Column("concurrency_max", Integer),
    Column("waiting_max", Integer),
    Column("created_at", BigInteger, nullable=False),
    Column("modified_at", BigInteger, nullable=False),
)
"""Where a function's calls go. `service` may carry a qualifier (`s.prod`) and is "" for the form without one.

`hook_seconds` bounds the calls of `initialize_url` and `pre_stop_url`. NULL in `concurrency_max` is no bound but the
server's; in the other two it is the default.
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
)
"""Callers. The secret must be kept as it is, since signatures are keyed with it; the bearer token only as SHA-256."""

nonces = Table(
    "nonces",
    metadata,
    Column("access_key_id", Text, primary_key=True),
    Column("nonce", Text, primary_key=True),
    Column("expires_at", BigInteger, nullable=False, index=True),
    sqlite_with_rowid=False,
)
"""Signature nonces seen inside the window in which a request could be replayed."""

nodes = Table(
    "nodes",
    metadata,
    Column("node_id", Text, primary_key=True),
    Column("session_name", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("heartbeat_at", BigInteger, nullable=False),
    Column("beats", BigInteger, nullable=False),
    Column("is_leaving", Boolean, nullable=False),
)
"""Leases: a server process may write, and its calls are its own, as long as its row is here.

`beats` rises while it lives; whoever sees it stand still deletes the row. `heartbeat_at` is for people only.
`session_name` is the name its database sessions go by, so that they can be ended with it.
"""

at_work = Table(
    "at_work",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("node_id", Text, primary_key=True),
    Column("unclean_ends", Integer, nullable=False),
)
"""Large executions that a node is at work on: written before it reads one, deleted with the commit of what it did.

So the row of a node that is gone tells of an unclean end. `unclean_ends` counts those before, one directly after the
other.
"""

secrets = Table(
    "secrets",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""Keys that the server made for itself, such as the one task tokens are authenticated with."""
