"""What can go wrong with a request, one class for each kind of reaction that a caller may have."""

from collections.abc import Mapping
from typing import Any, Final


class ClientError(Exception):
    """A request failed; the message is for people."""


class AddressInvalid(ClientError):
    """The URL of the server, or what goes with it, cannot be used."""


class NameInvalid(ClientError):
    """What was given as a name cannot be one: it has a `/`, for example. Nothing was sent."""


class Unreachable(ClientError):
    """No answer: the server is down, the network is, or what answers is no flowserver.

    `was_sent` is false if the request never left, so that it cannot have had an effect.
    """

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Unreadable(Unreachable):
    """What answers is no flowserver, or one of another version: the answer is not what the call returns."""


class WaitedTooLong(ClientError):
    """The execution had not ended when the given time was over. It runs on."""


class Refused(ClientError):
    """The server answered, and the answer is no."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        """The HTTP status."""
        self.code = _text(problem.get("code"))
        """The error's name, the same in every API of the server; empty if the answer names none."""
        self.detail = _text(problem.get("detail")) or _text(problem.get("message"))
        """What is wrong with the request, for people."""
        self.request_id = _text(problem.get("requestId"))
        """Names the request in the server's log."""
        self.diagnostics: list[dict[str, Any]] = problem.get("diagnostics") or []
        """All that was found, if a definition was refused."""
        self.redrive_instead = _text(problem.get("redriveInstead")) or None
        """FLOW/NAME of the execution to redrive, if the code is ExecutionEndReported and there is one."""
        self.was_repeated = False
        """Whether an earlier try was sent and got no answer: what prevents the request may be its own effect."""
        self.retry_after_seconds = 0.0
        """How long the server asks to wait before the next request."""
        named = f"{self.detail} ({self.code})" if self.detail and self.code else self.detail
        super().__init__(named or f"the server answered {status}")


class Invalid(Refused):
    """The request makes no sense to the server; sending it again does not help."""


class NotPermitted(Refused):
    """The server does not let the caller in."""


class NotFound(Refused):
    """There is no such flow, execution, function, queue or path."""


class Conflict(Refused):
    """Existing state prevents it: a name that is taken, an execution that has ended, a newer definition."""


class Throttled(Refused):
    """The server has too much to do. The request had no effect and was repeated already."""


class ServerFault(Refused):
    """The server failed."""


_ALREADY: Final = "Already"
"""The documented status of ExecutionAlreadyExists and of some others is 400, though existing state prevents them."""


def refusal(status: int, problem: Mapping[str, Any]) -> Refused:
    """The error for an answer that is no success."""
    kinds = {401: NotPermitted, 403: NotPermitted, 404: NotFound, 409: Conflict, 412: Conflict, 429: Throttled}
    default = Invalid if status < 500 else ServerFault
    kind = Conflict if _ALREADY in _text(problem.get("code")) else kinds.get(status, default)
    return kind(status, problem)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
