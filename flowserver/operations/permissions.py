"""What a caller may do: one table of names, which roles choose from. Every caller may do all of it."""

from typing import Final

PERMISSIONS: Final = {
    "executions.start": "start executions",
    "executions.stop": "stop executions",
    "executions.restart": "let parked executions go on",
    "executions.redrive": "redrive executions, one by one or many",
    "tasks.report": "report on tasks that wait for their token",
    "flows.write": "create and change flows",
    "flows.delete": "delete flows",
    "versions.publish": "publish versions of flows, and delete them",
    "aliases.write": "create, change and delete aliases",
    "schedules.write": "create, change, pause, resume and delete schedules",
    "schedules.run": "trigger schedules, and backfill them",
    "functions.write": "register functions, and remove them",
    "invocations.stop": "stop asynchronous invocations",
    "invocations.restart": "let parked asynchronous invocations go on",
    "queues.send": "send messages to queues",
    "queues.purge": "delete all messages of a queue",
    "topics.publish": "publish messages to topics",
    "keys.read": "list access keys, without secrets",
}
"""Each with what it allows. Reading what flows do needs a key alone."""
