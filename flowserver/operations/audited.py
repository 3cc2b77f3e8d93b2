"""Which operations the audit records, and from which level of the setting `audit` on."""

from typing import Final, Literal, NamedTuple

AuditLevel = Literal["changes", "reports", "all"]

LEVELS: Final[tuple[AuditLevel, ...]] = ("changes", "reports", "all")
"""From the least to the most; each records what those before it record."""


class Audited(NamedTuple):
    """An operation that is recorded."""

    level: AuditLevel
    meaning: str


AUDITED: Final = {
    "flows.create": Audited("changes", "create a flow"),
    "flows.update": Audited("changes", "change a flow"),
    "flows.put": Audited("changes", "create or change a flow"),
    "flows.delete": Audited("changes", "delete a flow"),
    "versions.publish": Audited("changes", "publish a version of a flow"),
    "versions.delete": Audited("changes", "delete a version"),
    "aliases.create": Audited("changes", "create an alias"),
    "aliases.update": Audited("changes", "change an alias"),
    "aliases.put": Audited("changes", "create or change an alias"),
    "aliases.delete": Audited("changes", "delete an alias"),
    "schedules.create": Audited("changes", "create a schedule"),
    "schedules.update": Audited("changes", "change a schedule"),
    "schedules.put": Audited("changes", "create or change a schedule"),
    "schedules.pause": Audited("changes", "pause a schedule"),
    "schedules.resume": Audited("changes", "resume a schedule"),
    "schedules.trigger": Audited("changes", "trigger a schedule"),
    "schedules.backfill": Audited("changes", "backfill a schedule"),
    "schedules.delete": Audited("changes", "delete a schedule"),
    "executions.stop": Audited("changes", "stop an execution"),
    "executions.restart": Audited("changes", "let a parked execution go on"),
    "executions.redrive": Audited("changes", "redrive an execution"),
    "executions.redrive-many": Audited("changes", "redrive a page of the executions of a flow"),
    "functions.put": Audited("changes", "register a function"),
    "functions.delete": Audited("changes", "remove a function"),
    "secrets.put": Audited("changes", "set a secret"),
    "secrets.delete": Audited("changes", "delete a secret"),
    "async-configs.put": Audited("changes", "configure asynchronous invocations"),
    "async-configs.delete": Audited("changes", "delete such a configuration"),
    "invocations.stop": Audited("changes", "stop an asynchronous invocation"),
    "invocations.restart": Audited("changes", "let a parked invocation go on"),
    "queues.create": Audited("changes", "create a queue"),
    "queues.update": Audited("changes", "change the attributes of a queue"),
    "queues.purge": Audited("changes", "delete all messages of a queue"),
    "queues.delete": Audited("changes", "delete a queue"),
    "topics.create": Audited("changes", "create a topic"),
    "topics.update": Audited("changes", "change the attributes of a topic"),
    "topics.delete": Audited("changes", "delete a topic"),
    "subscriptions.create": Audited("changes", "subscribe to a topic"),
    "subscriptions.update": Audited("changes", "change a subscription"),
    "subscriptions.delete": Audited("changes", "delete a subscription"),
    "keys.create": Audited("changes", "create an access key (a command, or a sign-in link)"),
    "keys.link": Audited("changes", "make a sign-in link (a command, or the start of an open server)"),
    "keys.disable": Audited("changes", "disable an access key (a command)"),
    "keys.rotate-tokens": Audited("changes", "replace the key of task tokens, a step of it (a command)"),
    "secrets.rekey": Audited("changes", "encrypt all secrets with the first key (a command)"),
    "keys.open": Audited("changes", "delete all access keys (a command)"),
    "database.restore": Audited("changes", "replace the database with a backup (a command)"),
    "database.fence": Audited("changes", "carry over to a restored database what a restore must not undo (a command)"),
    "database.copy": Audited("changes", "fill an empty database with a copy of another (a command)"),
    "tasks.report": Audited("reports", "report on a waiting task, such as an approval"),
    "executions.start": Audited("all", "start an execution"),
    "functions.invoke": Audited("all", "invoke a function"),
    "invocations.submit": Audited("all", "invoke a function asynchronously"),
    "queues.send": Audited("all", "send messages to a queue"),
    "topics.publish": Audited("all", "publish a message to a topic"),
}
"""What only reads is not recorded, nor what workers do with messages that they receive."""
