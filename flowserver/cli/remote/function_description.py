"""One registered function for people: what `flowserver functions get` prints."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from flowserver.cli.remote.times import shown_instant
from flowserver.cli.tables import aligned
from flowserver.client.results import Function

_BEFORE_HEADERS: Final = {"url": "url", "initialize url": "initializeUrl", "pre-stop url": "preStopUrl"}
_SECONDS: Final = {"time-out": "timeoutSeconds", "time for hooks": "hookSeconds"}
_NUMBERS: Final = {"calls at a time": "concurrencyMax", "calls that wait": "waitingMax"}
_INSTANTS: Final = {"created": "createdTime", "last modified": "lastModifiedTime"}


def described(function: Function) -> str:
    """What is set of it, one a line."""
    return aligned([[f"{title}:", value] for title, value in _fields(function)])


def _fields(function: Function) -> Iterator[tuple[str, str]]:
    found, now = function.document, datetime.now(UTC)
    yield "function", function.path
    yield from ((title, found[name]) for title, name in _BEFORE_HEADERS.items() if found.get(name))
    yield from (("header", f"{name}: {value}") for name, value in found.get("headers", {}).items())
    yield from ((title, f"{found[name]} s") for title, name in _SECONDS.items() if found.get(name) is not None)
    yield from ((title, f"at most {found[name]}") for title, name in _NUMBERS.items() if found.get(name) is not None)
    yield from ((title, shown_instant(found[name], now)) for title, name in _INSTANTS.items() if found.get(name))
