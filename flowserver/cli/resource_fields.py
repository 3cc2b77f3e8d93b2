"""The fields of what files describe: settings of flows, functions and schedules; and what is wrong with them that
is seen without a server.
"""

from collections.abc import Iterable, Iterator, Mapping
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

OVERLAPS: Final = ("Skip", "BufferOne", "BufferAll", "CancelOther", "TerminateOther", "AllowAll")


def unknown_fields(given: Mapping[Any, Any], kinds: Iterable[str]) -> Iterator[str]:
    """What to say of each key that no resource of these kinds has."""
    known = [field for kind in kinds for field in FIELDS[kind]]
    return (f"`{name}` is unknown{hint(str(name), known)}" for name in given if name not in known)


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean `NAME`?` for the nearest of the names, in upper or lower case; nothing if none is near."""
    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), list(by_lower), n=1)
    return f"; did you mean `{by_lower[near[0]]}`?" if near else ""


def overlap_of(given: Any) -> Any:
    """The overlap policy that is meant, in upper or lower case; any other value as it is."""
    by_lower = {each.lower(): each for each in OVERLAPS}
    return by_lower.get(given.lower(), given) if isinstance(given, str) else given


def overlap_mistake(given: Any) -> str | None:
    """What is wrong with an overlap policy, or None."""
    if given is None or given in OVERLAPS:
        return None
    return f"`overlap` must be one of {', '.join(OVERLAPS)}, not {given!r}{hint(str(given), OVERLAPS)}"
