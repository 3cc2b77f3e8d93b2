"""Queues that a broker keeps: how the settings name them, what is sent there, and the port that a client fills.

A broker's client is loaded with the first message (`broker_clients`), so nothing here imports one. Another broker
needs a client like `nats`, and its scheme in `CLIENTS`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from flowserver.base.errors import FlowServerError
from flowserver.base.names import QUEUE_NAME, QUEUE_NAME_CHARACTERS_MAX

CLIENTS: Final = {"nats": "flowserver.invokers.nats:NatsBroker"}
"""The client of each kind of broker, by its URLs' scheme, which is also the name of its package and of the extra."""

TIMEOUT_SECONDS_DEFAULT: Final = 5.0
TIMEOUT_SECONDS_MAX: Final = 60.0

FORM: Final = "nats://[user:password@]host[:port][,host[:port]...][/subject][?stream=NAME&timeout_seconds=5]"

_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")
_STREAM = re.compile(r"[A-Za-z0-9_-]+\Z")
_STREAM_RULE: Final = "a stream is written with letters, digits, _ and -"
_SUBJECT_RULE: Final = "a subject is written with letters, digits, _ and -, parted by dots"
_OPTIONS: Final = {"stream", "timeout_seconds"}


class OutletInvalid(Exception):
    """The settings map a queue to something else than a broker's URL; the message names the queue, not the URL."""


class BrokerUnavailable(FlowServerError):
    """The broker was not reached, or did not confirm the message in time."""

    code = "BrokerUnavailable"
    status = 503


class BrokerRefused(FlowServerError):
    """The broker does not take this message."""

    code = "BrokerRefused"
    status = 400


@dataclass(frozen=True, slots=True)
class Access:
    """A broker's hosts and the user to log in as. Queues with equal access share a connection."""

    scheme: str
    hosts: tuple[str, ...]
    """Each `host` or `host:port`."""
    user: str | None = None
    """With no password, a token."""
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where the messages of one queue go."""

    access: Access = field(repr=False)  # a user without a password is a secret, too
    subject: str
    stream: str | None = None
    """The stream that must keep the message, or the broker refuses it; None for any stream that takes the subject."""
    timeout_seconds: float = TIMEOUT_SECONDS_DEFAULT
    """The time within which a message must be confirmed, including connecting and retries."""

    def __str__(self) -> str:
        return f"{self.access.scheme}://{','.join(self.access.hosts)}/{self.subject}"


@dataclass(frozen=True, slots=True)
class BrokerMessage:
    """A message for a broker; the header values are single lines of ASCII."""

    body: bytes
    message_id: str
    """Equal for equal messages: the broker keeps one of several that come within the time it remembers ids for."""
    headers: Mapping[str, str]


class Broker(Protocol):
    """A client of one broker, as `Access` names it; made inside a running event loop."""

    async def publish(self, outlet: Outlet, message: BrokerMessage) -> None:
        """Return once the broker has confirmed that it keeps the message.

        Raises QueueNotExist, BrokerUnavailable (it may keep the message nevertheless), BrokerRefused.
        """
        ...

    async def close(self) -> None:
        """Give back all connections; publishing under way fails."""
        ...


_URL: Final = re.compile(r"(?P<scheme>[a-z]+)://(?P<hosts>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?")
"""Newer `urlsplit` refuse several hosts if one of them is an IPv6 address."""


def read_outlets(queues: Mapping[str, str]) -> dict[str, Outlet]:
    """The outlets of queues by name, from their URLs (`FORM`). Raises OutletInvalid."""
    return {queue: _read_outlet(queue, url) for queue, url in queues.items()}


def _read_outlet(queue: str, url: str) -> Outlet:
    try:
        if not QUEUE_NAME.match(queue) or len(queue) > QUEUE_NAME_CHARACTERS_MAX:
            raise ValueError("a queue's name has 1 to 120 letters, digits or -, and begins with a letter or digit")
        parts = _URL.fullmatch(url)
        if parts is None or parts["scheme"] not in CLIENTS:
            raise ValueError(f"the URL is not of the form {FORM}")
        if find_spec(parts["scheme"]) is None:
            raise ValueError(f"it needs a package: pip install 'flowserver[{parts['scheme']}]'")
        options = _read_options(parts["query"] or "")
        return Outlet(
            access=_read_access(parts["scheme"], parts["hosts"]),
            subject=_check_written(_SUBJECT, parts["path"].removeprefix("/") or queue, _SUBJECT_RULE),
            stream=_check_written(_STREAM, options["stream"], _STREAM_RULE) if "stream" in options else None,
            timeout_seconds=_read_seconds(options.get("timeout_seconds")),
        )
    except ValueError as error:
        raise OutletInvalid(f"the setting queues, {queue}: {error}") from None


def _read_access(scheme: str, authority: str) -> Access:
    identity, _, hosts = authority.rpartition("@")
    if "@" in identity or "," in identity:
        raise ValueError("the user is written once, before the first host, with any , or @ written %2C and %40")
    user, _, password = identity.partition(":")
    names = tuple(hosts.split(","))
    for name in names:
        _check_host(name)
    return Access(scheme, names, unquote(user) or None, unquote(password) or None)


def _check_host(name: str) -> None:
    try:
        parts = urlsplit(f"//{name}")
        is_good = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or re.search(r"\s", name):
        raise ValueError(f"{name!r} is not a host, or host:port")


def _read_options(query: str) -> dict[str, str]:
    options = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query))
    for name, values in options.items():
        if name not in _OPTIONS or len(values) > 1:
            raise ValueError(f"after the ? can stand {' and '.join(sorted(_OPTIONS))}, each once")
    return {name: value for name, (value,) in options.items()}


def _read_seconds(text: str | None) -> float:
    seconds = TIMEOUT_SECONDS_DEFAULT if text is None else float(text)
    if not 0 < seconds <= TIMEOUT_SECONDS_MAX:
        raise ValueError(f"timeout_seconds is above 0 and at most {TIMEOUT_SECONDS_MAX:g}")
    return seconds


def _check_written(pattern: re.Pattern[str], text: str, rule: str) -> str:
    if not pattern.match(text):
        raise ValueError(rule)
    return text
