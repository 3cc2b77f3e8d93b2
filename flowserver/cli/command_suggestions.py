"""What a first word that is no command probably means. Loaded when there is one."""

from collections.abc import Mapping
from typing import Any, Final

SUGGESTED_MAX: Final = 6

_OTHER_WORDS: Final = {
    "cancel": ["executions stop"],
    "check": ["validate"],
    "config": ["context"],
    "deploy": ["apply"],
    "events": ["executions history"],
    "lint": ["validate"],
    "login": ["context set"],
    "logs": ["executions history"],
    "ps": ["executions list"],
    "rerun": ["executions redrive"],
    "retry": ["executions redrive"],
    "run": ["start"],
    "server": ["serve"],
    "show": ["executions describe"],
    "tail": ["watch"],
    "terminate": ["executions stop"],
    "up": ["serve"],
    "wait": ["watch"],
}
"""Words of other programs."""


def meant_by(word: str, commands: Mapping[str, Any]) -> list[str]:
    """The commands whose verb this word is, those of executions first, or that other programs call so."""
    groups = sorted(commands, key=lambda name: name != "executions")
    found = [f"{group} {word}" for group in groups if word in getattr(commands[group], "commands", ())]
    return (_OTHER_WORDS.get(word, []) + found)[:SUGGESTED_MAX]
