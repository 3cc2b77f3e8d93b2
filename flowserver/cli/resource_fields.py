"""The fields of what files describe: settings of flows, functions and schedules; and what is wrong with them that
is seen without a server.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "settings": ("description", "retentionDays", "onRetriesExhausted"),
    "function": (
        "url",
        "timeoutSeconds",
        "headers",
        "headersFromEnv",
        "initializeUrl",
        "preStopUrl",
        "hookSeconds",
        "concurrencyMax",
        "waitingMax",
    ),
    "hosted function": (
        "handler",
        "timeoutSeconds",
        "initializer",
        "preFreeze",
        "preStop",
        "hookSeconds",
        "concurrencyMax",
        "waitingMax",
    ),
    "schedule": (
        "cronExpression",
        "timeZone",
        "description",
        "payload",
        "qualifier",
        "enabled",
        "note",
        "overlap",
        "catchUpSeconds",
        "pauseOnFailure",
        "remainingActions",
    ),
}
"""By kind, as the API names them."""

PART_MIN: Final = 4
"""Shortest part of a name that suggests it, in characters."""

OVERLAPS: Final = ("Skip", "BufferOne", "BufferAll", "CancelOther", "TerminateOther", "AllowAll")


def unknown_fields(kind: str, given: Any) -> dict[str, str]:
    """What to say of each key of an entry that no resource of this kind has."""
    if not isinstance(given, dict):
        return {}
    known = [field for each in _kinds(kind, given) for field in FIELDS[each]]
    return {str(key): f"`{key}` is unknown{hint(str(key), known)}" for key in given if key not in known}


def _kinds(kind: str, given: Mapping[Any, Any]) -> Sequence[str]:
    """The kinds that the entry may have: a function is registered elsewhere or hosted, which is seen at one key."""
    if kind != "function" or ("url" in given) is ("handler" in given):
        return ("hosted function", kind) if kind == "function" else (kind,)
    return (kind,) if "url" in given else ("hosted function",)


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean `NAME`?` for the nearest of the names, in upper or lower case; nothing if none is near.

    A part of only one of the names is near to it, as `cron` is to `cronExpression`.
    """
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), list(by_lower), n=1)
    longer = [each for each in by_lower if len(word) >= PART_MIN and word.lower() in each]
    near = longer if len(longer) == 1 else near
    return f"; did you mean `{by_lower[near[0]]}`?" if near else ""


def mistakes_in(detail: str, kind: str) -> list[tuple[str, str | None]]:
    """The mistakes that a refusal of the server names, each with its field, spelt as in files; None if it names none.

    The server joins those of several fields with semicolons, and begins some names in upper case.
    """
    fields = {spelt: each for each in FIELDS[kind] for spelt in (each, each[0].upper() + each[1:])}
    of_field = re.compile(rf"`?({'|'.join(fields)})\b")
    found: list[tuple[str, str | None]] = []
    for part in re.split(rf"; (?=`?(?:{'|'.join(fields)})\b)", detail):
        if named := of_field.match(part):
            field = fields[named[1]]
            found.append((f"{part[: named.start(1)]}{field}{part[named.end(1) :]}", field))
        else:
            found.append((part, None))
    return found


def overlap_of(given: Any) -> Any:
    """The overlap policy that is meant, in upper or lower case; any other value as it is."""
    by_lower = {each.lower(): each for each in OVERLAPS}
    return by_lower.get(given.lower(), given) if isinstance(given, str) else given


def overlap_mistake(given: Any) -> str | None:
    """What is wrong with an overlap policy, or None."""
    if given is None or given in OVERLAPS:
        return None
    return f"`overlap` must be one of {', '.join(OVERLAPS)}, not {given!r}{hint(str(given), OVERLAPS)}"
