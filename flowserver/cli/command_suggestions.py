"""What a word that is no command probably means. Loaded when there is one."""

from collections.abc import Mapping
from typing import Any, Final

SUGGESTED_MAX: Final = 6

_OTHER_WORDS: Final = {
    "attach": ("watch",),
    "cancel": ("executions stop",),
    "check": ("validate",),
    "complete": ("tasks succeed",),
    "config": ("context",),
    "deploy": ("apply",),
    "describe-execution": ("executions describe",),
    "events": ("executions history",),
    "exec": ("start",),
    "execute": ("start",),
    "follow": ("watch",),
    "health": ("status", "doctor"),
    "help": ("--help",),
    "info": ("status",),
    "jobs": ("executions list",),
    "kill": ("executions stop",),
    "lint": ("validate",),
    "login": ("context set",),
    "logs": ("executions history",),
    "list-executions": ("executions list",),
    "ls": ("executions list", "flows list"),
    "new": ("apply",),
    "ps": ("executions list",),
    "record": ("test record",),
    "rerun": ("executions redrive",),
    "reset": ("executions redrive",),
    "retry": ("executions redrive",),
    "rm": ("flows delete",),
    "rollback": ("aliases update",),
    "run": ("start", "executions list"),
    "runs": ("executions list",),
    "server": ("serve",),
    "show": ("executions describe",),
    "signal": ("tasks succeed",),
    "start-execution": ("start",),
    "start-sync-execution": ("start",),
    "state-machine": ("flows",),
    "stop-execution": ("executions stop",),
    "tail": ("watch",),
    "terminate": ("executions stop",),
    "trace": ("executions history",),
    "up": ("serve",),
    "version": ("--version",),
    "wait": ("watch",),
    "workflow": ("executions", "flows"),
    "workflows": ("executions", "flows"),
}
"""Words of other programs."""

_FIRST: Final = {"create": ("apply",)}
"""What a verb of several nouns means first."""

_VERBS: Final = {
    "abort": ("stop",),
    "add": ("create", "put", "set"),
    "cancel": ("stop",),
    "cat": ("get", "describe"),
    "create": ("put", "set"),
    "del": ("delete",),
    "describe": ("get",),
    "disable": ("pause",),
    "edit": ("update", "set"),
    "enable": ("resume",),
    "events": ("history",),
    "get": ("describe", "list"),
    "info": ("describe", "get"),
    "inspect": ("describe", "get"),
    "kill": ("stop",),
    "log": ("history",),
    "logs": ("history",),
    "ls": ("list",),
    "modify": ("update", "set"),
    "new": ("create", "put"),
    "read": ("get", "peek"),
    "receive": ("peek",),
    "register": ("put",),
    "remove": ("delete",),
    "rerun": ("redrive",),
    "reset": ("redrive",),
    "resume": ("redrive",),
    "retry": ("redrive", "restart"),
    "revoke": ("disable",),
    "rm": ("delete",),
    "run": ("trigger",),
    "search": ("list",),
    "show": ("describe", "get"),
    "suspend": ("pause",),
    "terminate": ("stop",),
    "trace": ("history",),
    "unpause": ("resume",),
    "unregister": ("delete",),
    "update": ("set", "put"),
    "view": ("describe", "get"),
}
"""Verbs of other programs, each with those that a noun may have in its place."""

_START: Final = "flowserver start"
_WATCH: Final = "flowserver watch"
_APPLY: Final = "flowserver apply"

_OF_NOUNS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "executions": {
        "get": ("describe",),
        "retry": ("redrive",),
        **dict.fromkeys(("create", "execute", "new", "run", "start"), (_START,)),
        **dict.fromkeys(("attach", "follow", "tail", "wait", "watch"), (_WATCH,)),
        **dict.fromkeys(("delete", "remove", "rm"), ("stop",)),
        "signal": ("flowserver tasks succeed",),
    },
    "flows": {
        **dict.fromkeys(("execute", "run", "start"), (_START,)),
        **dict.fromkeys(("add", "apply", "create", "deploy", "new", "put", "register"), (_APPLY,)),
        **dict.fromkeys(("edit", "modify", "update"), (_APPLY, "set")),
        **dict.fromkeys(("check", "lint", "validate"), ("flowserver validate",)),
        **dict.fromkeys(("executions", "runs"), ("flowserver executions list",)),
        "publish": ("flowserver versions publish",),
    },
    "functions": {
        **dict.fromkeys(("host", "run", "start"), ("serve",)),
        "apply": (_APPLY,),
    },
    "invocations": {"redrive": ("restart",)},
    "queues": {"publish": ("send",), "clear": ("purge",), "drain": ("purge",), "get": ("list", "peek")},
    "schedules": {"start": ("trigger",), "fire": ("trigger",), "toggle": ("pause", "resume"), "apply": (_APPLY,)},
    "tasks": {
        **dict.fromkeys(("answer", "complete", "done", "report", "success"), ("succeed",)),
        **dict.fromkeys(("error", "failure", "reject"), ("fail",)),
    },
    "topics": {"send": ("publish",), "get": ("list",)},
    "versions": {
        "create": ("publish",),
        "new": ("publish",),
        "show": ("get",),
        "rollback": ("flowserver aliases update",),
    },
    "context": {"create": ("set",), "login": ("set",), "switch": ("use",), "get": ("list",), "show": ("list",)},
    "aliases": {"set": ("create", "update"), "put": ("create", "update")},
    "keys": {"delete": ("disable",), "remove": ("disable",), "rm": ("disable",), "revoke": ("disable",)},
}
"""What a verb means after a noun, where that is another command than `_VERBS` says."""


_QUEUES: Final = "docs/how-to/queues.md"
_TOPICS: Final = "docs/reference/queues.md"

_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("queues create", "queues put"),
        f"A request creates it: curl -X PUT http://127.0.0.1:8080/queues/NAME; or an SDK: {_QUEUES}",
    ),
    **dict.fromkeys(
        ("queues delete", "queues remove", "queues rm"),
        f"A request deletes it: curl -X DELETE http://127.0.0.1:8080/queues/NAME; or an SDK: {_QUEUES}",
    ),
    **dict.fromkeys(
        ("queues receive", "queues ack"),
        f"A worker receives and deletes messages by requests or an SDK: {_QUEUES}. To look at them: "
        "flowserver queues peek",
    ),
    **dict.fromkeys(
        ("topics create", "topics put"),
        f"A request creates it: curl -X PUT http://127.0.0.1:8080/topics/NAME; or an SDK: {_TOPICS}",
    ),
    **dict.fromkeys(("topics subscribe", "topics unsubscribe"), f"A request or an SDK does that: {_TOPICS}"),
    **dict.fromkeys(
        ("functions invoke", "functions call", "invoke"),
        "Steps of flows call functions: flowserver start. A request calls one without a flow: "
        "docs/reference/invocations.md",
    ),
    **dict.fromkeys(
        ("tasks heartbeat", "heartbeat"),
        "Tasks have no heartbeats: a step waits as long as its timeoutSeconds. To report: flowserver tasks succeed",
    ),
}
"""What is done in another way than by a command, and how."""


def done_elsewhere(words: str) -> str | None:
    """How that is done which is no command, where that is known."""
    return _ELSEWHERE.get(words)


def meant_by(word: str, commands: Mapping[str, Any]) -> list[str]:
    """The commands whose verb this word is, those of executions first, or that other programs call so."""
    groups = sorted(commands, key=lambda name: name != "executions")
    found = [f"{group} {word}" for group in groups if word in getattr(commands[group], "commands", ())]
    return [*_OTHER_WORDS.get(word, ()), *_FIRST.get(word, ()), *found][:SUGGESTED_MAX]


def verbs_meant_by(noun: str, word: str, verbs: Mapping[str, Any]) -> list[str]:
    """The commands that other programs call so: verbs of the noun, or `flowserver …`; none if it is not known."""
    meant = _OF_NOUNS.get(noun, {}).get(word) or _VERBS.get(word, ())
    return [each for each in meant if each in verbs or each.startswith("flowserver ")]
