"""Paths of the API, made from names."""

from typing import Final
from urllib.parse import quote

from flowserver.client.errors import NameInvalid
from flowserver.client.results import WITHOUT_SERVICE

_NAMED_BY: Final = {
    "flows": "a flow's name",
    "executions": "an execution's name",
    "schedules": "a schedule's name",
    "versions": "a version's number",
    "aliases": "an alias's name",
    "functions": "a function's name",
    "invocations": "an invocation's id",
    "secrets": "a secret's name",
    "queues": "a queue's name",
    "topics": "a topic's name",
}
"""The segment after each of these in a path."""


def path_of(*parts: str) -> str:
    """A path of the API. Each part is one segment: raises NameInvalid for a name that cannot be.

    Servers decode a path before they divide it, so that an encoded `/` in a name would lead to another resource.
    """
    for before, part in zip(("", *parts), parts, strict=False):
        _check_segment(part, part, _NAMED_BY.get(before, "a name"))
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _check_segment(part: str, name: str, what: str) -> None:
    """Raises NameInvalid for a name with a part that cannot be one segment of a path."""
    if "/" in part or not part.strip(".") or not part.isprintable():
        raise NameInvalid(f"{name!r} is not {what}")


def function_path(name: str, *rest: str) -> str:
    """The path of a function that is written SERVICE/FUNCTION, or FUNCTION if it has no service."""
    service, slash, function = name.partition("/")
    parts = (service, function) if slash else (WITHOUT_SERVICE, name)
    for part in parts:
        _check_segment(part, name, "a function's name")
    return path_of("functions", *parts, *rest)
