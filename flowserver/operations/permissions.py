"""What callers may do: one table of permissions, and one of the roles, which hold them."""

from typing import Final

PERMISSIONS: Final = {
    "flows.read": "read flows, versions, aliases and schedules; check, draw and test definitions",
    "executions.read": "read an execution whose name the caller knows: its state, steps and history",
    "executions.list": "list executions",
    "executions.start": "start executions",
    "executions.stop": "stop executions",
    "executions.restart": "let parked executions go on",
    "executions.redrive": "redrive executions, one by one or many",
    "tasks.read": "list tasks that wait for a report, with their tokens",
    "tasks.report": "report on tasks that wait for their token",
    "flows.write": "create and change flows",
    "flows.delete": "delete flows",
    "versions.publish": "publish versions of flows, and delete them",
    "aliases.write": "create, change and delete aliases",
    "schedules.write": "create, change, pause, resume and delete schedules",
    "schedules.run": "trigger schedules, and backfill them",
    "functions.read": "read the registry of functions, their health, and asynchronous invocations",
    "functions.write": "register functions, and remove them; configure asynchronous invocations",
    "secrets.read": "list secrets, without values",
    "secrets.write": "set and delete secrets; no permission reads their values",
    "functions.invoke": "invoke functions, at once or asynchronously",
    "invocations.stop": "stop asynchronous invocations",
    "invocations.restart": "let parked asynchronous invocations go on",
    "queues.read": "read queues and topics, and peek at messages",
    "queues.write": "create, change and delete queues, topics and subscriptions",
    "queues.send": "send messages to queues",
    "queues.receive": "receive, hide and delete messages of queues",
    "queues.purge": "delete all messages of a queue",
    "topics.publish": "publish messages to topics",
    "server.read": "read the overview and the nodes of the server",
    "keys.read": "list access keys, without secrets",
    "audit.read": "read the audit",
}
"""Each with what it allows."""

_READING: Final = (
    *("flows.read", "executions.read", "executions.list", "tasks.read"),
    *("functions.read", "secrets.read", "queues.read", "server.read"),
)

ADMIN: Final = "admin"
"""The role that may do everything: also that of callers of a server without keys."""

ROLES: Final[dict[str, frozenset[str]]] = {
    "viewer": frozenset(_READING),
    "starter": frozenset({"executions.start", "executions.read"}),
    "worker": frozenset(
        {"tasks.read", "tasks.report", "queues.read", "queues.send", "queues.receive", "topics.publish"}
    ),
    "operator": frozenset(
        {
            *_READING,
            *("executions.start", "executions.stop", "executions.restart", "executions.redrive"),
            *("schedules.write", "schedules.run", "invocations.stop", "invocations.restart", "queues.purge"),
        }
    ),
    "deployer": frozenset(
        {
            *_READING,
            *("flows.write", "flows.delete", "versions.publish", "aliases.write", "schedules.write"),
            *("functions.write", "functions.invoke", "secrets.write", "queues.write"),
        }
    ),
    ADMIN: frozenset(PERMISSIONS),
}
"""Each with its permissions. An unknown role, such as one of a newer version, has none."""


def roles_with(permission: str) -> list[str]:
    """The roles that have a permission."""
    return [role for role, permissions in ROLES.items() if permission in permissions]
